"""Rows of a set with their texts, in batches of some thousand, so that memory does not grow with the set."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from annotation.exports.files import ExportFiles
from annotation.exports.sets import source
from annotation.exports.sets.rows import SetQuery, SetRow
from annotation.exports.sets.source import SetText
from corpus.evidence.targets import texts_of
from corpus.rubric import Rubric
from judges.retrieval.synthesis import ScoredPair, read_scored_pairs

ROWS = 2_000


@dataclass(frozen=True, slots=True)
class LoadedQuery:
    """A query of a set with the texts and the judgments of its rows."""

    set_query: SetQuery
    stored_text: SetText  # The query as it is stored.
    instruction: str  # The statement of its definition of relevance.
    documents: dict[int, SetText]  # Documents of the whole batch, by primary key.
    # Votes of each pair, by judge and sample: 0 or 1.
    votes: dict[int, dict[tuple[int, int], int]] = field(default_factory=dict)
    # Text of contribution and evidence, by pair.
    targets: dict[int, str] = field(default_factory=dict)
    # Generations of the campaign that scored the pair, by pair.
    scored: dict[int, ScoredPair] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The id of the query in its collection."""
        return self.set_query.id

    @property
    def text(self) -> str:
        """The words of the query."""
        return self.stored_text.text

    @property
    def synthetic(self) -> bool:
        """Whether a model wrote the query."""
        return self.set_query.synthetic

    @property
    def rows(self) -> list[SetRow]:
        """The rows of the query, in the order of their document ids."""
        return self.set_query.rows

    @property
    def positives(self) -> list[SetRow]:
        """The rows whose documents are relevant to the query."""
        return [row for row in self.rows if row.relevant]

    @property
    def negatives(self) -> list[SetRow]:
        """The rows whose documents are not relevant to the query, or are assumed not to be."""
        return [row for row in self.rows if not row.relevant]

    def document_of(self, row: SetRow) -> SetText:
        """Return the document of a row."""
        return self.documents[row.document]


Batch = list[LoadedQuery]


class SetWriter(Protocol):
    """Writer of a format: `begin` is called for each split, `add` for each of its batches, `end` once."""

    def begin(self, split: str, queries: list[SetQuery]) -> None:
        """Begin a split, of which the next batches are."""

    def add(self, batch: Batch) -> int:
        """Write the rows of whole queries, and return the number of lines."""

    def end(self) -> dict[str, object]:
        """Close the files, and return the format's details for the manifest."""


class LinesWriter:
    """Writer of a format with one file <split>.jsonl per split. Subclasses build the lines of a query."""

    marks_synthetic_lines = False  # Whether lines of synthetic queries are marked as such.

    def __init__(self, files: ExportFiles) -> None:
        self.files = files
        self.synthetic_lines: list[dict[str, Any]] = []

    def begin(self, split: str, queries: list[SetQuery]) -> None:
        """Open the file of the split."""
        self.output = self.files.open(f"{split}.jsonl")

    def add(self, batch: Batch) -> int:
        """Write a line for each object, and return the number of lines."""
        count = self.output.rows
        for query in batch:
            for values in self.build_lines(query):
                self.output.put(json.dumps(values, ensure_ascii=False) + "\n", rows=1)
                if query.synthetic and not self.marks_synthetic_lines:
                    self.synthetic_lines.append(
                        {"file": self.output.path.name, "line": self.output.rows, "synthetic": True}
                    )
        return self.output.rows - count

    def build_lines(self, query: LoadedQuery) -> Iterator[dict[str, Any]]:
        """Yield the JSON object of each line of a query."""
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
        batch.append(
            LoadedQuery(
                set_query=query,
                stored_text=text,
                instruction=definition.statement,
                documents=documents,
                votes=votes,
                targets=targets,
                scored=scored,
            )
        )
    return batch
