"""Rows of a set with their texts, in batches of some thousand, so that memory does not grow with the set."""

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
class FilledQuery:
    """A query with its texts and the data of its rows."""

    query: SetQuery
    text: SetText
    documents: dict[int, SetText]  # Documents of the whole batch, by key.
    instruction: str  # The statement of its definition of relevance.
    # Votes of each pair, by judge and sample: 0 or 1.
    votes: dict[int, dict[tuple[int, int], int]] = field(default_factory=dict)
    # Text of contribution and evidence, by pair.
    targets: dict[int, str] = field(default_factory=dict)
    # Generations of the campaign that scored the pair, by pair.
    scored: dict[int, ScoredPair] = field(default_factory=dict)


Batch = list[FilledQuery]


class SetWriter(Protocol):
    """Writer of a format: `begin` is called for each split, `add` for each of its batches, `end` once."""

    def begin(self, split: str, queries: list[SetQuery]) -> None:
        """Begin a split, of which the next batches are."""

    def add(self, batch: Batch) -> int:
        """Write the rows of whole queries, and return the number of lines."""

    def end(self) -> dict[str, object]:
        """Close the files, and return the format's details for the manifest."""


class LinesWriter:
    """Writer of a format with one file <split>.jsonl per split. Subclasses make the lines of a query."""

    marks_rows = False  # Whether lines of synthetic queries are marked as such.

    def __init__(self, files: ExportFiles) -> None:
        self.files = files
        self.marks: list[dict[str, Any]] = []

    def begin(self, split: str, queries: list[SetQuery]) -> None:
        """Open the file of the split."""
        self.output = self.files.open(f"{split}.jsonl")

    def add(self, batch: Batch) -> int:
        """Write a line for each object, and return the number of lines."""
        count = self.output.rows
        for filled in batch:
            for values in self.lines(filled):
                self.output.put(json.dumps(values, ensure_ascii=False) + "\n", rows=1)
                if filled.query.synthetic and not self.marks_rows:
                    self.marks.append({"file": self.output.path.name, "line": self.output.rows, "synthetic": True})
        return self.output.rows - count

    def lines(self, filled: FilledQuery) -> Iterator[dict[str, Any]]:
        """Yield the objects of a query."""
        raise NotImplementedError


def build_batches(queries: list[SetQuery], rubrics: dict[str, Rubric], *, evidence: bool) -> Iterator[Batch]:
    """Yield batches of whole queries, in order. `rubrics`: by collection; `evidence`: read votes and targets too."""
    batch_queries: list[SetQuery] = []
    rows = 0
    for query in queries:
        batch_queries.append(query)
        rows += len(query.rows)
        if rows >= ROWS:
            yield _build_batch(batch_queries, rubrics, evidence)
            batch_queries, rows = [], 0
    if batch_queries:
        yield _build_batch(batch_queries, rubrics, evidence)


def _build_batch(queries: list[SetQuery], rubrics: dict[str, Rubric], evidence: bool) -> Batch:
    texts = source.read_queries([query.key for query in queries])
    documents = source.read_documents([row.document for query in queries for row in query.rows])
    pairs = [row.pair for query in queries for row in query.rows if row.pair]
    votes = source.read_votes(pairs) if evidence else {}
    targets = texts_of(pairs) if evidence else {}
    scored: dict[int, ScoredPair] = {}
    for campaign in {row.campaign for query in queries for row in query.rows} - {0}:
        campaign_pairs = [row.pair for query in queries for row in query.rows if row.campaign == campaign]
        scored |= read_scored_pairs(campaign, campaign_pairs)
    batch = []
    for query in queries:
        text = texts[query.key]
        definition = rubrics[query.source].definition(answers=bool(text.answers), query_instruction=text.title)
        batch.append(FilledQuery(query, text, documents, definition.statement, votes, targets, scored))
    return batch
