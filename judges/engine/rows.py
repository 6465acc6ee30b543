"""Rows that a worker stores: attempts and outcomes of pairs, each kind in one set-based statement.

The statements check the fencing token. An attempt whose lease was lost is stored as a record of its
cost, but never counts; an outcome whose lease was lost changes nothing. All may be run twice with the
same rows.
"""

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import Connection

from judges.records import WITHOUT_PAIR, Quote, Turn
from store.sql import read_sql

Row = dict[str, Any]

# The values of a call's row until its answer arrives.
NO_ANSWER: Row = {
    **{"outcome": "error", "counts": False, "cached": False, "quotes": [], "calls": 0},
    **dict.fromkeys(("verdict", "score", "probabilities", "status")),
    **dict.fromkeys(("reason", "reasoning", "error", "finish", "answered_by"), ""),
    **dict.fromkeys(("tokens_in", "tokens_cached", "tokens_written", "tokens_out", "tokens_reasoning", "ms"), 0),
    **dict.fromkeys(("cost", "usd", "bound"), 0.0),
}


@dataclass(slots=True)
class AttemptRow:
    """A row of Attempt, or of RetrievalCall, with the two bodies of the call."""

    row: Row
    # Text is compressed when it is stored, in the writer's thread; bytes are compressed already.
    messages: str | bytes = b""
    raw: str | bytes = b""


@dataclass(slots=True)
class OutcomeRow:
    """The outcome of a pair, with what its label, judgments and tasks need."""

    row: Row
    is_target: bool = False  # A target that a judge wrote, good or for a person to edit: it labels nothing.


StoredRow = AttemptRow | OutcomeRow

STORE_ATTEMPTS = read_sql(__file__, "store_attempts")
STORE_CALLS = read_sql(__file__, "store_calls")
BOOK_CALLS = read_sql(__file__, "book_calls")
STORE_OUTCOMES = read_sql(__file__, "store_outcomes")
STORE_TARGETS = read_sql(__file__, "store_targets")
# Every transaction that resolves labels locks the pairs first, in this order (corpus.labels).
LOCK_PAIRS = "SELECT id FROM corpus_pair WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE"


def stored_turn(row: Row) -> Turn:
    """Return the turn of a labelled attempt. For a text, which has no verdict, the turn's is a placeholder."""
    quotes = tuple(Quote(**quote) for quote in row["quotes"])
    return Turn(
        1 if row["verdict"] is None else row["verdict"], row["reason"], quotes, row["score"], row["probabilities"]
    )


def _compress_text(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else zlib.compress(text.encode("utf-8", "replace"), 1)


def store_rows(connection: Connection[Any], rows: Sequence[StoredRow], shard: int) -> None:
    """Store all rows in the connection's current transaction.

    1. Attempts about pairs, and calls about none, with their costs. They come first, so that an outcome is never
       visible without its evidence.
    2. Outcomes of pairs, and targets, after their pairs are locked.
    """
    attempts, calls, outcomes, targets = list[AttemptRow](), list[AttemptRow](), list[Row](), list[Row]()
    for result in rows:
        if isinstance(result, AttemptRow):
            (calls if result.row["role"] in WITHOUT_PAIR else attempts).append(result)
        else:
            (targets if result.is_target else outcomes).append(result.row)
    for statement, batch in ((STORE_ATTEMPTS, attempts), (STORE_CALLS, calls)):
        if batch:
            values = {
                "rows": json.dumps([attempt.row for attempt in batch]),
                "ids": [attempt.row["id"] for attempt in batch],
                "messages": [_compress_text(attempt.messages) for attempt in batch],
                "raws": [_compress_text(attempt.raw) for attempt in batch],
            }
            new_ids = [row[0] for row in connection.execute(statement, values)]
            connection.execute(BOOK_CALLS, {"rows": values["rows"], "stored": new_ids, "shard": shard})
    if outcomes:
        connection.execute(LOCK_PAIRS, [[row["pair"] for row in outcomes if row["state"] == "labelled"]])
        connection.execute(STORE_OUTCOMES, {"rows": json.dumps(outcomes), "shard": shard})
    if targets:
        connection.execute(LOCK_PAIRS, [[row["pair"] for row in targets]])
        connection.execute(STORE_TARGETS, {"rows": json.dumps(targets), "shard": shard})
