"""A training set of scores with their chains from disk: `export --format erank-sft` (pure)."""

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
    """A document of a query. `label`: whether it is relevant; `teacher`: its score, in [0, 1]."""

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
    """Return the rows of each query that can be ranked, and how many other queries there are.

    A query is ranked when it has two documents or more, one of them relevant.
    """
    ordered = sorted(rows, key=lambda row: row.query_id)
    found = {query: list(some) for query, some in groupby(ordered, key=lambda row: row.query_id)}
    whole = {query: some for query, some in found.items() if len(some) > 1 and any(row.label for row in some)}
    return whole, len(found) - len(whole)
