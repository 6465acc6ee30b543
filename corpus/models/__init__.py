"""Models of collections: queries, documents and pairs, with the tasks, judgments and labels of pairs."""

from corpus.models.judging import Assessor, CurrentJudgment, ExportedLabels, ExportRecord, Item, Judgment, Label, Target
from corpus.models.numbering import NUMBER, LastNumber, Numbered
from corpus.models.texts import NAME, Collection, Document, Pair, Query, Versioned, shown_only

__all__ = [
    "NAME", "NUMBER", "Assessor", "Collection", "CurrentJudgment", "Document", "ExportRecord",
    "ExportedLabels", "Item", "Judgment", "Label", "LastNumber", "Numbered", "Pair", "Query",
    "Target", "Versioned", "shown_only",
]  # fmt: skip
