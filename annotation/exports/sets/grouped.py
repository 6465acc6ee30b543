"""Training-set formats with one line per query, which contains its positive and its negative documents.

The formats are those of RTriever (BRIGHT-Pro 5.2), FlagEmbedding, ms-swift and Tevatron, which train embedders and
rerankers. Positive documents are relevant to the query; negative documents are not, or are assumed not to be.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from annotation.exports.files import ExportFiles
from annotation.exports.options import ExportOptions
from annotation.exports.sets.batches import FilledQuery, LinesWriter
from annotation.exports.sets.rows import SetRow, newest_label

Line = dict[str, Any]  # One JSON object, whose keys are those that the training library reads.
LineBuilder = Callable[[FilledQuery, list[SetRow], list[SetRow], ExportOptions], Line]
"""Builds the line of a query from its positive rows, its negative rows and the options of the export."""


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
    # FlagEmbedding uses scores for knowledge distillation, which needs a teacher other than the labels.
    if options.teacher != "labels":
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
        # Tevatron joins title and text itself, so they are two fields.
        return [
            {
                "docid": row.doc_id,
                "title": filled.documents[row.document].title,
                "text": filled.documents[row.document].text,
            }
            for row in rows
        ]

    return {
        "query_id": filled.query.id,
        "query": filled.text.text,
        "positive_passages": build_passages(positives),
        "negative_passages": build_passages(negatives),
    }


GROUPED_FORMATS: dict[str, LineBuilder] = {
    "rtriever": _rtriever_line,
    "flagembedding": _flagembedding_line,
    "ms-swift": _swift_line,
    # An embedder reads queries and documents in the same way, so both have the role "user".
    "ms-swift-embedding": partial(_swift_line, role="user"),
    "tevatron": _tevatron_line,
}


class GroupedWriter(LinesWriter):
    """Writes one line per query. Callers pass only queries with at least one positive and one negative document."""

    def __init__(self, files: ExportFiles, format_name: str, options: ExportOptions) -> None:
        super().__init__(files)
        # Only RTriever's lines have a field `synthetic`. For the other formats of this module, the lines of synthetic
        # queries are listed in synthetic.jsonl.
        self.marks_rows = format_name == "rtriever"
        self.build_line = GROUPED_FORMATS[format_name]
        self.options = options

    def lines(self, filled: FilledQuery) -> Iterator[Line]:
        positives = [row for row in filled.query.rows if row.relevant]
        negatives = [row for row in filled.query.rows if not row.relevant]
        yield self.build_line(filled, positives, negatives, self.options)

    def end(self) -> dict[str, Any]:
        """Return an empty dict, because these formats add no details to the manifest."""
        return {}
