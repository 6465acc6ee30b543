"""A BEIR folder: the whole corpus, the set's queries, and the labels of each split."""

import json
from collections.abc import Sequence
from typing import Any

from annotation.exports.files import ExportFiles, ExportOutput
from annotation.exports.sets.batches import Batch
from annotation.exports.sets.rows import SetQuery
from annotation.exports.sets.source import SetSource, read_corpus

HEADER = "query-id\tcorpus-id\tscore\n"


class Beir:
    """Writes corpus.jsonl, queries.jsonl and qrels/<split>.tsv with the grades of the collection."""

    def __init__(self, files: ExportFiles, sources: Sequence[SetSource]) -> None:
        self.files = files
        self.sources = sources
        self.corpus = files.open("corpus.jsonl")
        self.queries = files.open("queries.jsonl")
        self.qrels: ExportOutput | None = None

    def begin(self, split: str, queries: list[SetQuery]) -> None:
        """Begin a split: the next batches are of it."""
        self.qrels = self.files.open(f"qrels/{split}.tsv")
        self.qrels.put(HEADER)

    def add(self, batch: Batch) -> int:
        """Write the queries with their answers, and a line for each label."""
        assert self.qrels is not None
        before = self.qrels.rows
        for filled in batch:
            text = filled.text
            query = {"_id": filled.query.id, "text": text.text, "answers": text.answers, "metadata": text.metadata}
            if text.title:  # What relevant means for this query alone.
                query["instruction"] = text.title
            self.queries.put(_json_line(query), rows=1)
            rows = filled.query.rows
            lines = [f"{filled.query.id}\t{row.doc_id}\t{row.grade}\n" for row in rows]
            self.qrels.put("".join(lines), rows=len(lines))
        return self.qrels.rows - before

    def end(self) -> dict[str, Any]:
        """Write the documents last: they do not depend on the choices."""
        for source in self.sources:
            for text in read_corpus(source):
                self.corpus.put(
                    _json_line({"_id": text.id, "title": text.title, "text": text.text, "metadata": text.metadata}),
                    rows=1,
                )
        return {"documents": self.corpus.rows}


def _json_line(values: dict[str, Any]) -> str:
    if not values["metadata"]:
        del values["metadata"]
    return json.dumps(values, ensure_ascii=False) + "\n"
