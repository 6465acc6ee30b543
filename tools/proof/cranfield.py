"""Cranfield's files: its queries and grades, a seeded sample of queries, and the pool of some runs. Pure."""

import json
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from html import unescape
from pathlib import Path

DOCUMENTS, QUERIES, QRELS = "cran.all.1400.xml", "cran.qry.xml", "cranqrel.trec.txt"
FILES = (DOCUMENTS, QUERIES, QRELS)
TOPIC = re.compile(r"<top>.*?<title>(.*?)</title>.*?</top>", re.DOTALL)
DOCUMENT = re.compile(r"<docno>\s*(\S+?)\s*</docno>.*?<text>(.*?)</text>", re.DOTALL)
Grades = dict[tuple[str, str], int]
Run = dict[str, list[str]]
"""Document ids of each query, best first."""


def squeeze(text: str) -> str:
    """Return a text with single spaces, as pages, prompts and files of one text are compared."""
    return " ".join(text.split())


def read_queries(path: Path) -> dict[str, str]:
    """Return the texts of the queries by their position in the file, from 1 on, as the qrels number them."""
    texts = TOPIC.findall(path.read_text(encoding="utf-8"))
    return {str(number): squeeze(unescape(text)) for number, text in enumerate(texts, 1)}


def read_documents(path: Path) -> dict[str, str]:
    """Return the texts of the documents by their ids."""
    return {name: squeeze(unescape(text)) for name, text in DOCUMENT.findall(path.read_text(encoding="utf-8"))}


def read_qrels(path: Path) -> Grades:
    """Return 1 or 0 for each judged pair of query and document: the file's one grade of 3 is relevant, too."""
    rows = (line.split() for line in path.read_text().splitlines() if line.strip())
    return {(query, document): int(int(grade) >= 1) for query, _zero, document, grade in rows}


def read_run(path: Path) -> Run:
    """Return the rankings of a TREC run, in the order of its ranks."""
    rows = [line.split() for line in path.read_text().splitlines()]
    ranking: Run = {}
    for query, _q0, document, _rank, _score, _name in sorted(rows, key=lambda row: (row[0], int(row[3]))):
        ranking.setdefault(query, []).append(document)
    return ranking


def sample_queries(grades: Grades, number: int, seed: int) -> list[str]:
    """Return `number` queries with a relevant document, drawn by `seed`, in the order of their numbers."""
    judged = sorted({query for (query, _document), grade in grades.items() if grade}, key=int)
    return sorted(random.Random(seed).sample(judged, min(number, len(judged))), key=int)


def pool(runs: Iterable[Run], queries: Sequence[str], depth: int) -> list[tuple[str, str]]:
    """Return the pairs of the queries with the first documents of each run, each once, in a fixed order."""
    pairs = {(query, document) for run in runs for query in queries for document in run.get(query, [])[:depth]}
    return sorted(pairs, key=lambda pair: (int(pair[0]), int(pair[1])))


def hide_grades(grades: Grades, queries: Sequence[str], share: float, seed: int) -> Grades:
    """Return the relevant pairs of these queries without a `share` of them, drawn by `seed`; each query keeps one."""
    chosen: Grades = {}
    for query in queries:
        relevant = sorted(
            (pair for pair, grade in grades.items() if grade and pair[0] == query), key=lambda pair: int(pair[1])
        )
        kept = max(1, round(len(relevant) * (1 - share)))
        chosen |= {pair: 1 for pair in random.Random(f"{seed} {query}").sample(relevant, kept)}
    return chosen


def write_run(path: Path, run: Path, queries: Sequence[str]) -> Path:
    """Write the lines of a run that are about these queries."""
    numbers = set(queries)
    lines = [line for line in run.read_text().splitlines(keepends=True) if line.split(maxsplit=1)[0] in numbers]
    path.write_text("".join(lines))
    return path


def write_queries(path: Path, texts: Mapping[str, str], queries: Sequence[str]) -> Path:
    """Write queries as JSON Lines."""
    path.write_text("".join(json.dumps({"_id": query, "text": texts[query]}) + "\n" for query in queries))
    return path


def write_qrels(path: Path, grades: Mapping[tuple[str, str], int]) -> Path:
    """Write grades as TREC qrels."""
    path.write_text("".join(f"{query} 0 {document} {grade}\n" for (query, document), grade in grades.items()))
    return path
