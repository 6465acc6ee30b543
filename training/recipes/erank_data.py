"""A training set of scores with their chains from disk: `export --format erank-sft` (pure; FORMATS, BUILD A)."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from corpus.errors import BadInput
from judges.domain.chains import HIGHEST
from training.recipes.data import Example, TrainingSet, read_manifest

FORMAT = "erank-sft"


@dataclass(frozen=True, slots=True)
class ScoredExample(Example):
    """One document of a query. `label`: whether it is relevant; `teacher`: its score, in [0, 1]."""

    score: int = 0
    chain: str = ""


def read_erank_set(folder: Path) -> TrainingSet:
    """Read and check an export of format erank-sft. Raises BadInput with file and line."""
    manifest, digest = read_manifest(folder, FORMAT)
    train: list[Example] = list(_read_rows(folder / "train.jsonl"))
    dev: list[Example] = list(_read_rows(folder / "dev.jsonl")) if (folder / "dev.jsonl").exists() else []
    if not train:
        raise BadInput(f"{folder / 'train.jsonl'} holds no row: nothing can be learned from it")
    return TrainingSet(train, dev, "scores", str(manifest.get("collection", "")), digest, manifest)


def _read_rows(path: Path) -> Iterator[ScoredExample]:
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from None
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield _parse_row(json.loads(line))
            except (ValueError, TypeError, KeyError) as error:
                found = f"{type(error).__name__} {error}"
                raise BadInput(f"{path}, line {number}: {found}: not a row of an {FORMAT} set") from None


def _parse_row(row: Mapping[str, Any]) -> ScoredExample:
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

    A query is ranked when it has two documents or more, one of them relevant (BUILD A).
    """
    ordered = sorted(rows, key=lambda row: row.query_id)
    found = {query: list(some) for query, some in groupby(ordered, key=lambda row: row.query_id)}
    whole = {query: some for query, some in found.items() if len(some) > 1 and any(row.label for row in some)}
    return whole, len(found) - len(whole)
