"""A retrieval task as MTEB and the Hub read it: corpus, queries and qrels, and a card that names them."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from annotation.exports.files import ExportFiles, ExportOutput
from annotation.exports.sets.batches import Batch
from annotation.exports.sets.parquet import SAMPLED, list_languages
from annotation.exports.sets.rows import SetQuery
from annotation.exports.sets.source import SetSource, read_corpus
from corpus.search.text import detect_language


class Mteb:
    """Writes corpus.jsonl, queries.jsonl, qrels/<split>.jsonl and README.md."""

    def __init__(self, files: ExportFiles, sources: Sequence[SetSource]) -> None:
        self.files = files
        self.sources = sources
        self.card = files.open("README.md")
        self.corpus = files.open("corpus.jsonl")
        self.queries = files.open("queries.jsonl")
        self.qrels: dict[str, ExportOutput] = {}
        self.languages: Counter[str] = Counter()

    def begin(self, split: str, queries: list[SetQuery]) -> None:
        """Begin a split: the next batches are of it."""
        self.split = split
        self.qrels[split] = self.files.open(f"qrels/{split}.jsonl")

    def add(self, batch: Batch) -> int:
        """Write the queries, and a line for each label."""
        output = self.qrels[self.split]
        before = output.rows
        for filled in batch:
            if self.languages.total() < SAMPLED:
                self.languages[detect_language(filled.text.text) or "en"] += 1
            _put_line(self.queries, {"_id": filled.query.id, "text": filled.text.text})
            for row in filled.query.rows:
                _put_line(output, {"query-id": filled.query.id, "corpus-id": row.doc_id, "score": row.grade})
        return output.rows - before

    def end(self) -> dict[str, Any]:
        """Write the documents, and the card, which says what there is."""
        for source in self.sources:
            for text in read_corpus(source):
                _put_line(self.corpus, {"_id": text.id, "title": text.title, "text": text.text})
        self.card.put(task_card(self.sources[0], list(self.qrels), list_languages(self.languages)))
        return {"documents": self.corpus.rows}


def _put_line(output: ExportOutput, values: dict[str, Any]) -> None:
    output.put(json.dumps(values, ensure_ascii=False) + "\n", rows=1)


def task_card(source: SetSource, splits: list[str], languages: list[str]) -> str:
    """Return the text of README.md: the three configurations that a loader asks for, and how to use them."""
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
        "No query stands in two splits. The licence of the texts is that of their source.",
    ]
    return "\n".join(lines) + "\n"
