"""Rows that a worker writes: ended attempts and decided pairs, each kind in one set-based statement.

Both statements check the fence. An attempt whose lease was lost is kept as evidence of what was
paid, but never counts; an outcome whose lease was lost changes nothing. Both may be run twice with
the same rows.
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

# What the row of a call says until its answer is there.
NO_ANSWER: Row = {
    **{"outcome": "error", "counts": False, "cached": False, "quotes": [], "calls": 0},
    **dict.fromkeys(("verdict", "score", "probabilities", "status")),
    **dict.fromkeys(("reason", "reasoning", "error", "finish", "answered_by"), ""),
    **dict.fromkeys(("tokens_in", "tokens_cached", "tokens_written", "tokens_out", "tokens_reasoning", "ms"), 0),
    **dict.fromkeys(("cost", "usd", "bound"), 0.0),
}


@dataclass(slots=True)
class Attempted:
    """A row of Attempt with its two compressed bodies, and what it held of the budget."""

    row: Row
    # Text is compressed when stored, in the writer's thread; bytes and `raw` are already.
    messages: str | bytes = b""
    raw: str | bytes = b""


@dataclass(slots=True)
class Decided:
    """The outcome of a pair, with what labels, judgments and items need."""

    row: Row
    is_target: bool = False  # A target that a judge wrote, good or for a person to edit: it labels nothing.


Ended = Attempted | Decided

STORE_ATTEMPTS = read_sql(__file__, "store_attempts")
STORE_CALLS = read_sql(__file__, "store_calls")
BOOK_CALLS = read_sql(__file__, "book_calls")
STORE_OUTCOMES = read_sql(__file__, "store_outcomes")
STORE_TARGETS = read_sql(__file__, "store_targets")
# Whoever resolves labels locks the pairs first, in this order (corpus.labels).
LOCK_PAIRS = "SELECT id FROM corpus_pair WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE"


def stored_turn(row: Row) -> Turn:
    """Return the turn that the row of a labelled attempt holds; that of a text has a verdict that says nothing."""
    quotes = tuple(Quote(**quote) for quote in row["quotes"])
    return Turn(
        1 if row["verdict"] is None else row["verdict"], row["reason"], quotes, row["score"], row["probabilities"]
    )


def _compress_text(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else zlib.compress(text.encode("utf-8", "replace"), 1)


def store_rows(connection: Connection[Any], ended: Sequence[Ended], shard: int) -> None:
    """Write everything in the connection's present transaction: attempts first, then outcomes."""
    # Attempts first, so that an outcome is never visible without the evidence that it rests on.
    attempts = [one for one in ended if isinstance(one, Attempted) and one.row["role"] not in WITHOUT_PAIR]
    calls = [one for one in ended if isinstance(one, Attempted) and one.row["role"] in WITHOUT_PAIR]
    outcomes = [one.row for one in ended if isinstance(one, Decided) and not one.is_target]
    targets = [one.row for one in ended if isinstance(one, Decided) and one.is_target]
    for statement, stored in ((STORE_ATTEMPTS, attempts), (STORE_CALLS, calls)):
        if stored:
            values = {
                "rows": json.dumps([one.row for one in stored]),
                "ids": [one.row["id"] for one in stored],
                "messages": [_compress_text(one.messages) for one in stored],
                "raws": [_compress_text(one.raw) for one in stored],
            }
            new = [row[0] for row in connection.execute(statement, values)]
            connection.execute(BOOK_CALLS, {"rows": values["rows"], "stored": new, "shard": shard})
    if outcomes:
        connection.execute(LOCK_PAIRS, [[row["pair"] for row in outcomes if row["state"] == "labelled"]])
        connection.execute(STORE_OUTCOMES, {"rows": json.dumps(outcomes), "shard": shard})
    if targets:
        connection.execute(LOCK_PAIRS, [[row["pair"] for row in targets]])
        connection.execute(STORE_TARGETS, {"rows": json.dumps(targets), "shard": shard})
