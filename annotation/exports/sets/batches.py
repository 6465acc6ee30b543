"""Rows of a set with their texts, some thousand at a time, so that memory stays flat."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from annotation.exports.files import ExportFiles
from annotation.exports.sets import source
from annotation.exports.sets.rows import SetQuery
from annotation.exports.sets.source import SetText
from corpus.evidence.targets import texts_of
from corpus.rubric import Rubric
from judges.retrieval.synthesis import ScoredPair, read_scored_pairs

ROWS = 2_000


@dataclass(frozen=True, slots=True)
class Filled:
    """A query with everything that its rows need."""

    query: SetQuery
    text: SetText
    documents: dict[int, SetText]  # By their keys; those of the whole batch.
    instruction: str  # What relevant means for its pairs: the statement of its definition.
    # For each pair what each judge said, by id and sample: 0 or 1.
    votes: dict[int, dict[tuple[int, int], int]] = field(default_factory=dict)
    # For each pair the text of contribution and evidence, where there is one.
    targets: dict[int, str] = field(default_factory=dict)
    # For each pair its generations, where a campaign scored it.
    scored: dict[int, ScoredPair] = field(default_factory=dict)


Batch = list[Filled]


class SetWriter(Protocol):
    """A format: told of each split, then of its batches."""

    def begin(self, split: str, queries: list[SetQuery]) -> None:
        """Begin a split: the next batches are of it."""

    def add(self, batch: Batch) -> int:
        """Write the rows of whole queries, and return how many lines they became."""

    def end(self) -> dict[str, object]:
        """Close the files, and return what the manifest says beside the counts of all sets."""


class LinesWriter:
    """A format of one file <split>.jsonl a split; it says which objects a query makes."""

    marks_rows = False  # Whether each line says itself that a model wrote its query.

    def __init__(self, files: ExportFiles) -> None:
        self.files = files
        self.marks: list[dict[str, Any]] = []

    def begin(self, split: str, queries: list[SetQuery]) -> None:
        """Open the file of the split."""
        self.output = self.files.open(f"{split}.jsonl")

    def add(self, batch: Batch) -> int:
        """Write a line for each object, and return how many there were."""
        before = self.output.rows
        for filled in batch:
            for values in self.lines(filled):
                self.output.put(json.dumps(values, ensure_ascii=False) + "\n", rows=1)
                if filled.query.synthetic and not self.marks_rows:
                    self.marks.append({"file": self.output.path.name, "line": self.output.rows, "synthetic": True})
        return self.output.rows - before

    def write_synthetic_lines(self) -> None:
        """Name the lines with a synthetic query in a file beside, for formats whose lines have no place for it."""
        if self.marks:
            output = self.files.open("synthetic.jsonl")
            for mark in self.marks:
                output.put(json.dumps(mark) + "\n", rows=1)

    def lines(self, filled: Filled) -> Iterator[dict[str, Any]]:
        """Yield the objects that a query makes."""
        raise NotImplementedError


def build_batches(queries: list[SetQuery], rubrics: dict[str, Rubric], *, evidence: bool) -> Iterator[Batch]:
    """Yield batches of whole queries, in their order. `rubrics`: of each source; `evidence`: with votes and targets."""
    waiting: list[SetQuery] = []
    rows = 0
    for query in queries:
        waiting.append(query)
        rows += len(query.rows)
        if rows >= ROWS:
            yield _build_batch(waiting, rubrics, evidence)
            waiting, rows = [], 0
    if waiting:
        yield _build_batch(waiting, rubrics, evidence)


def _build_batch(queries: list[SetQuery], rubrics: dict[str, Rubric], evidence: bool) -> Batch:
    texts = source.read_queries([query.key for query in queries])
    documents = source.read_documents([row.document for query in queries for row in query.rows])
    pairs = [row.pair for query in queries for row in query.rows if row.pair]
    votes = source.read_votes(pairs) if evidence else {}
    targets = texts_of(pairs) if evidence else {}
    scored: dict[int, ScoredPair] = {}
    for campaign in {row.campaign for query in queries for row in query.rows} - {0}:
        mine = [row.pair for query in queries for row in query.rows if row.campaign == campaign]
        scored |= read_scored_pairs(campaign, mine)
    found = []
    for query in queries:
        text = texts[query.key]
        definition = rubrics[query.source].definition(answers=bool(text.answers), query_instruction=text.title)
        found.append(Filled(query, text, documents, definition.statement, votes, targets, scored))
    return found
