"""Qrels and runs from files, recognised by content (CONTRACT); what is wrong is told with its line. Pure."""

import math
from pathlib import Path

from corpus.errors import BadInput
from corpus.importing.files import Source
from corpus.importing.grades import grades, top_of_run

ALL = 1 << 31
"""A depth that keeps every document of a run."""
TOP_GRADE = 1_000_000_000
SHOWN = 20
"""Bad lines that are listed; the rest is counted."""


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    """query id -> document id -> grade, below 0 as 0. Raises BadInput for bad rows and for a pair that stands twice."""
    source = Source(path)
    found: dict[str, dict[str, int]] = {}
    bad: list[str] = []
    for row in grades(source, TOP_GRADE):
        if row.problem:
            bad.append(f"line {row.line}: {row.problem}")
        elif found.setdefault(row.query, {}).setdefault(row.document, max(0, row.grade)) != max(0, row.grade):
            bad.append(f'line {row.line}: document "{row.document}" has another grade for query "{row.query}" above')
    if bad:
        more = f" and {len(bad) - SHOWN} more" if len(bad) > SHOWN else ""
        raise BadInput(f"{path}: {'; '.join(bad[:SHOWN])}{more}")
    if not found:
        raise BadInput(f"{path} holds no grade: there is nothing to measure")
    return found


def read_run(path: Path) -> dict[str, dict[str, float]]:
    """query id -> document id -> score. Raises BadInput for wrong columns, scores that are none, and duplicates."""
    source = Source(path)
    found: dict[str, dict[str, float]] = {}
    for row in top_of_run(source, ALL):
        if math.isinf(row.score):
            raise source.bad(row.line, "the score is infinite")
        found.setdefault(row.query, {})[row.document] = row.score
    if not found:
        raise BadInput(f"{path} holds no line: it is not a run")
    return found


def write_run(path: Path, ranking: dict[str, dict[str, float]], tag: str) -> int:
    """A TREC run, queries in the order given, documents by score and then id descending; returns the lines."""
    lines = 0
    part = path.with_name(f".{path.name}.part")
    with part.open("x", encoding="utf-8") as file:
        for query, documents in ranking.items():
            ordered = sorted(sorted(documents.items(), reverse=True), key=lambda one: -one[1])
            for rank, (document, score) in enumerate(ordered, 1):
                file.write(f"{query} Q0 {document} {rank} {score:.9g} {tag}\n")
                lines += 1
    part.rename(path)
    return lines
