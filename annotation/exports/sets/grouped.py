"""Training-set formats with one line per query, which contains its positive and its negative documents.

The formats are those of RTriever (BRIGHT-Pro 5.2), FlagEmbedding, ms-swift and Tevatron, which train embedders and
rerankers. Positive documents are relevant to the query; negative documents are not, or are assumed not to be.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from annotation.exports.files import ExportFiles
from annotation.exports.options import ExportOptions
from annotation.exports.sets.batches import LinesWriter, LoadedQuery
from annotation.exports.sets.rows import SetRow, newest_label_time

Line = dict[str, Any]  # One JSON object, whose keys are those that the training library reads.


class GroupedWriter(LinesWriter):
    """Writes one line per query. Callers pass only queries with at least one positive and one negative document."""

    def __init__(self, files: ExportFiles, format_name: str, options: ExportOptions) -> None:
        super().__init__(files)
        # Lines of the format "rtriever" have a field `synthetic`. For the other formats, LinesWriter lists the lines of
        # synthetic queries in a file of their own.
        self.marks_synthetic_lines = format_name == "rtriever"
        self.line_builder = GROUPED_FORMATS[format_name]
        self.options = options

    def build_lines(self, query: LoadedQuery) -> Iterator[Line]:
        yield self.line_builder(query, self.options)

    def end(self) -> dict[str, Any]:
        """Return an empty dict, because these formats add no details to the manifest."""
        return {}


def _build_rtriever_line(query: LoadedQuery, options: ExportOptions) -> Line:
    def build_document(row: SetRow) -> Line:
        return {"doc_id": row.doc_id, "text": query.document_of(row).full_text}

    return {
        "query_id": query.id,
        "query": query.text,
        "positives": [build_document(row) for row in query.positives],
        "negatives": [build_document(row) | {"assumed": row.assumed} for row in query.negatives],
        "synthetic": query.synthetic,
        "instruction": query.instruction,
        "labelled_at": newest_label_time(query.rows),
    }


def _build_flagembedding_line(query: LoadedQuery, options: ExportOptions) -> Line:
    line: Line = {
        "query": query.text,
        "pos": [query.document_of(row).full_text for row in query.positives],
        "neg": [query.document_of(row).full_text for row in query.negatives],
    }
    # FlagEmbedding uses scores for knowledge distillation, which needs a teacher other than the labels.
    if options.teacher != "labels":
        line["pos_scores"] = [row.target_score for row in query.positives]
        line["neg_scores"] = [row.target_score for row in query.negatives]
    line["prompt"] = query.instruction
    return line


def _build_swift_line(query: LoadedQuery, options: ExportOptions, document_role: str) -> Line:
    def build_conversations(rows: list[SetRow]) -> list[list[Line]]:
        # Each document is a conversation of its own, which has only one message.
        return [[{"role": document_role, "content": query.document_of(row).full_text}] for row in rows]

    return {
        "messages": [{"role": "user", "content": query.text}],
        "positive_messages": build_conversations(query.positives),
        "negative_messages": build_conversations(query.negatives),
    }


def _build_tevatron_line(query: LoadedQuery, options: ExportOptions) -> Line:
    def build_passage(row: SetRow) -> Line:
        # Tevatron joins title and text itself, so they are two fields.
        document = query.document_of(row)
        return {"docid": row.doc_id, "title": document.title, "text": document.text}

    return {
        "query_id": query.id,
        "query": query.text,
        "positive_passages": [build_passage(row) for row in query.positives],
        "negative_passages": [build_passage(row) for row in query.negatives],
    }


# For each format, the function that builds the line of a query. All take the options, because that of FlagEmbedding
# needs them.
GROUPED_FORMATS: dict[str, Callable[[LoadedQuery, ExportOptions], Line]] = {
    "rtriever": _build_rtriever_line,
    "flagembedding": _build_flagembedding_line,
    # A reranker answers the query with a document, whereas an embedder reads both of them in the same way.
    "ms-swift": partial(_build_swift_line, document_role="assistant"),
    "ms-swift-embedding": partial(_build_swift_line, document_role="user"),
    "tevatron": _build_tevatron_line,
}
