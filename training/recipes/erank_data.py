"""Training sets of scores with chains of reasoning: exports of format erank-sft (pure)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from judges.domain.chains import HIGHEST
from training.recipes.data import Example, TrainingSet, read_rows, read_set

FORMAT = "erank-sft"


@dataclass(frozen=True, slots=True)
class ScoredExample(Example):
    """A document of a query with a score from 0 to 10 and the reasoning behind it; `teacher` is the score in 0..1."""

    score: int = 0
    chain: str = ""


def read_erank_set(folder: Path) -> TrainingSet:
    """Read and check an export of format erank-sft. Raises BadInput with file and line."""
    return read_set(folder, FORMAT, lambda path: read_rows(path, _parse_row, FORMAT), "scores")


def _parse_row(row: Mapping[str, Any], _number: int) -> ScoredExample:
    score = row["score"]
    if isinstance(score, bool) or not isinstance(score, int) or not 0 <= score <= HIGHEST:
        raise ValueError(f"score {score!r} is not a whole number from 0 to {HIGHEST}")
    return ScoredExample(
        query=str(row["query"]),
        document=str(row["document"]),
        instruction=str(row.get("instruction") or ""),
        label=int(bool(row["positive"])),
        teacher=score / HIGHEST,
        query_id=str(row["query_id"]),
        doc_id=str(row["doc_id"]),
        score=score,
        chain=str(row["chain"]),
    )


def group_by_query(rows: Sequence[Example]) -> tuple[dict[str, list[Example]], int]:
    """Return the rows of each query that can be ranked, and the number of queries that cannot.

    A query can be ranked if it has two documents or more, at least one of them relevant.
    """
    ordered = sorted(rows, key=lambda row: row.query_id)
    queries = {query: list(group) for query, group in groupby(ordered, key=lambda row: row.query_id)}
    ranked = {query: group for query, group in queries.items() if len(group) > 1 and any(row.label for row in group)}
    return ranked, len(queries) - len(ranked)
