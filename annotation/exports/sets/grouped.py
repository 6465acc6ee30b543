"""Formats with a line for each query, with its relevant and its other documents.

RTriever (BRIGHT-Pro 5.2), FlagEmbedding, ms-swift and Tevatron, for training embedders and rerankers.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from annotation.exports.files import ExportFiles
from annotation.exports.options import ExportOptions
from annotation.exports.sets.batches import FilledQuery, LinesWriter
from annotation.exports.sets.rows import SetRow, newest_label

Line = dict[str, Any]


def _rtriever_line(
    filled: FilledQuery, positives: list[SetRow], negatives: list[SetRow], options: ExportOptions
) -> Line:
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


def _flagembedding_line(
    filled: FilledQuery, positives: list[SetRow], negatives: list[SetRow], options: ExportOptions
) -> Line:
    line: Line = {
        "query": filled.text.text,
        "pos": [filled.documents[row.document].whole for row in positives],
        "neg": [filled.documents[row.document].whole for row in negatives],
    }
    if options.teacher != "labels":  # Scores are for knowledge distillation only.
        line |= {"pos_scores": [row.teacher for row in positives], "neg_scores": [row.teacher for row in negatives]}
    return line | {"prompt": filled.instruction}


def _swift_line(
    filled: FilledQuery,
    positives: list[SetRow],
    negatives: list[SetRow],
    options: ExportOptions,
    role: str = "assistant",
) -> Line:
    def build_messages(rows: list[SetRow]) -> list[list[Line]]:
        return [[{"role": role, "content": filled.documents[row.document].whole}] for row in rows]

    return {
        "messages": [{"role": "user", "content": filled.text.text}],
        "positive_messages": build_messages(positives),
        "negative_messages": build_messages(negatives),
    }


def _tevatron_line(
    filled: FilledQuery, positives: list[SetRow], negatives: list[SetRow], options: ExportOptions
) -> Line:
    def build_passages(rows: list[SetRow]) -> list[Line]:
        texts = [(row.doc_id, filled.documents[row.document]) for row in rows]
        return [{"docid": doc_id, "title": text.title, "text": text.text} for doc_id, text in texts]

    return {
        "query_id": filled.query.id,
        "query": filled.text.text,
        "positive_passages": build_passages(positives),
        "negative_passages": build_passages(negatives),
    }


GROUPED: dict[str, Callable[[FilledQuery, list[SetRow], list[SetRow], ExportOptions], Line]] = {
    "rtriever": _rtriever_line,
    "flagembedding": _flagembedding_line,
    "ms-swift": _swift_line,
    # An embedder reads queries and documents in the same way, so both have the role of the user.
    "ms-swift-embedding": partial(_swift_line, role="user"),
    "tevatron": _tevatron_line,
}


class GroupedWriter(LinesWriter):
    """Writer of a line for each query. All queries have a relevant and another document."""

    def __init__(self, files: ExportFiles, name: str, options: ExportOptions) -> None:
        super().__init__(files)
        self.marks_rows = name == "rtriever"
        self.build_line = GROUPED[name]
        self.options = options

    def lines(self, filled: FilledQuery) -> Iterator[Line]:
        positives = [row for row in filled.query.rows if row.relevant]
        negatives = [row for row in filled.query.rows if not row.relevant]
        yield self.build_line(filled, positives, negatives, self.options)

    def end(self) -> dict[str, Any]:
        """Return no details."""
        return {}
