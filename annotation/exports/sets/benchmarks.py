"""Benchmark formats: a BEIR folder, and a retrieval task for MTEB and the Hub."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from annotation.exports.files import ExportFiles, ExportOutput
from annotation.exports.sets.batches import Batch, LoadedQuery
from annotation.exports.sets.parquet import SAMPLED, list_languages
from annotation.exports.sets.rows import SetQuery, SetRow
from annotation.exports.sets.source import SetSource, SetText, read_corpus
from corpus.search.text import detect_language


class BeirWriter:
    """Writer of corpus.jsonl, queries.jsonl and qrels/<split>.tsv, with the collection's grades."""

    header, suffix = "query-id\tcorpus-id\tscore\n", "tsv"

    def __init__(self, files: ExportFiles, sources: Sequence[SetSource]) -> None:
        self.files, self.sources, self.splits = files, sources, list[str]()
        self.corpus = files.open("corpus.jsonl")
        self.queries = files.open("queries.jsonl")

    def begin(self, split: str, queries: list[SetQuery]) -> None:
        """Begin a split, of which the next batches are."""
        self.splits.append(split)
        self.qrels = self.files.open(f"qrels/{split}.{self.suffix}")
        self.qrels.put(self.header)

    def add(self, batch: Batch) -> int:
        """Write the queries, and a line for each label."""
        count = self.qrels.rows
        for query in batch:
            put_line(self.queries, self.describe_query(query))
            for row in query.rows:
                self.put_label(query.id, row)
        return self.qrels.rows - count

    def end(self) -> dict[str, Any]:
        """Write all documents of the collections, and return their number."""
        for source in self.sources:
            for text in read_corpus(source):
                put_line(self.corpus, self.describe_document(text))
        return {"documents": self.corpus.rows}

    def put_label(self, query: str, row: SetRow) -> None:
        """Write the line of a label."""
        self.qrels.put(f"{query}\t{row.doc_id}\t{row.grade}\n", rows=1)

    def describe_query(self, query: LoadedQuery) -> dict[str, Any]:
        """Return a query with its answers, and with its own definition of relevance if it has one."""
        stored_text = query.stored_text
        description: dict[str, Any] = {"_id": query.id, "text": query.text, "answers": stored_text.answers}
        if stored_text.metadata:
            description["metadata"] = stored_text.metadata
        if stored_text.title:
            description["instruction"] = stored_text.title
        return description

    def describe_document(self, text: SetText) -> dict[str, Any]:
        """Return a document."""
        document = {"_id": text.id, "title": text.title, "text": text.text}
        return document | ({"metadata": text.metadata} if text.metadata else {})


class MtebWriter(BeirWriter):
    """Writer of corpus.jsonl, queries.jsonl, qrels/<split>.jsonl and README.md."""

    header, suffix = "", "jsonl"

    def __init__(self, files: ExportFiles, sources: Sequence[SetSource]) -> None:
        self.card = files.open("README.md")
        self.languages: Counter[str] = Counter()
        super().__init__(files, sources)

    def put_label(self, query: str, row: SetRow) -> None:
        put_line(self.qrels, {"query-id": query, "corpus-id": row.doc_id, "score": row.grade})

    def describe_query(self, query: LoadedQuery) -> dict[str, Any]:
        if self.languages.total() < SAMPLED:
            self.languages[detect_language(query.text) or "en"] += 1
        return {"_id": query.id, "text": query.text}

    def describe_document(self, text: SetText) -> dict[str, Any]:
        return {"_id": text.id, "title": text.title, "text": text.text}

    def end(self) -> dict[str, Any]:
        """Write the documents and the card, and return the number of documents."""
        details = super().end()
        self.card.put(task_card(self.sources[0], self.splits, list_languages(self.languages)))
        return details


def put_line(output: ExportOutput, values: dict[str, Any]) -> None:
    """Write an object as a line of JSON."""
    output.put(json.dumps(values, ensure_ascii=False) + "\n", rows=1)


def task_card(source: SetSource, splits: list[str], languages: list[str]) -> str:
    """Return the text of README.md: the configurations for loaders, and a description of the files."""
    title = source.collection.title or source.collection.name
    lines = ["---", "configs:"]
    for name in ("corpus", "queries"):
        lines += [f"- config_name: {name}", "  data_files:", f"  - split: {name}", f"    path: {name}.jsonl"]
    lines += ["- config_name: qrels", "  data_files:"]
    for split in splits:
        lines += [f"  - split: {split}", f"    path: qrels/{split}.jsonl"]
    lines += ["license: unknown", "language:", *(f"- {code}" for code in languages)]
    lines += ["task_categories:", "- text-retrieval", "tags:", "- mteb", "- text", "---", "", f"# {title}", ""]
    lines += [
        "A retrieval task: `corpus` (`_id`, `title`, `text`), `queries` (`_id`, `text`) and `qrels` (`query-id`,",
        f"`corpus-id`, `score`: the grade, 0 to {source.collection.grades}), the last with the splits "
        f"{', '.join(splits)}.",
        "No query is in two splits. The licence of the texts is that of their source.",
    ]
    return "\n".join(lines) + "\n"
