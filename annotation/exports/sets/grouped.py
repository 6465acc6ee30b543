"""A line for each query, with its relevant and its other documents, as trainers of embedders and rerankers read it.

RTriever (BRIGHT-Pro 5.2), FlagEmbedding, ms-swift and Tevatron.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from annotation.exports.files import ExportFiles
from annotation.exports.options import ExportOptions
from annotation.exports.sets.batches import Filled, LinesWriter
from annotation.exports.sets.rows import SetRow, newest_label

Line = dict[str, Any]


def _rtriever_line(filled: Filled, positives: list[SetRow], negatives: list[SetRow], asked: ExportOptions) -> Line:
    def build_document(row: SetRow) -> Line:
        return {"doc_id": row.doc_id, "text": filled.documents[row.document].whole}

    return {
        "query_id": filled.query.id,
        "query": filled.text.text,
        "positives": [build_document(row) for row in positives],
        "negatives": [build_document(row) | {"assumed": row.assumed} for row in negatives],
        "synthetic": filled.query.synthetic,
        "instruction": filled.instruction,
        "labelled_at": newest_label([*positives, *negatives]),
    }


def _flagembedding_line(filled: Filled, positives: list[SetRow], negatives: list[SetRow], asked: ExportOptions) -> Line:
    line: Line = {
        "query": filled.text.text,
        "pos": [filled.documents[row.document].whole for row in positives],
        "neg": [filled.documents[row.document].whole for row in negatives],
    }
    if asked.teacher != "labels":  # Scores are for knowledge distillation alone.
        line |= {"pos_scores": [row.teacher for row in positives], "neg_scores": [row.teacher for row in negatives]}
    return line | {"prompt": filled.instruction}


def _swift_line(
    filled: Filled, positives: list[SetRow], negatives: list[SetRow], asked: ExportOptions, role: str = "assistant"
) -> Line:
    def build_messages(rows: list[SetRow]) -> list[list[Line]]:
        return [[{"role": role, "content": filled.documents[row.document].whole}] for row in rows]

    return {
        "messages": [{"role": "user", "content": filled.text.text}],
        "positive_messages": build_messages(positives),
        "negative_messages": build_messages(negatives),
    }


def _tevatron_line(filled: Filled, positives: list[SetRow], negatives: list[SetRow], asked: ExportOptions) -> Line:
    def build_passages(rows: list[SetRow]) -> list[Line]:
        texts = [(row.doc_id, filled.documents[row.document]) for row in rows]
        return [{"docid": doc_id, "title": text.title, "text": text.text} for doc_id, text in texts]

    return {
        "query_id": filled.query.id,
        "query": filled.text.text,
        "positive_passages": build_passages(positives),
        "negative_passages": build_passages(negatives),
    }


GROUPED: dict[str, Callable[[Filled, list[SetRow], list[SetRow], ExportOptions], Line]] = {
    "rtriever": _rtriever_line,
    "flagembedding": _flagembedding_line,
    "ms-swift": _swift_line,
    # An embedder reads query and document alike: both are the user's.
    "ms-swift-embedding": partial(_swift_line, role="user"),
    "tevatron": _tevatron_line,
}


class Grouped(LinesWriter):
    """Writes a line for each query, each with a relevant and another document."""

    def __init__(self, files: ExportFiles, name: str, asked: ExportOptions) -> None:
        super().__init__(files)
        self.marks_rows = name == "rtriever"
        self.build_line = GROUPED[name]
        self.asked = asked

    def lines(self, filled: Filled) -> Iterator[Line]:
        positives = [row for row in filled.query.rows if row.relevant]
        negatives = [row for row in filled.query.rows if not row.relevant]
        yield self.build_line(filled, positives, negatives, self.asked)

    def end(self) -> dict[str, Any]:
        """Return nothing: the counts of all sets say it."""
        return {}
