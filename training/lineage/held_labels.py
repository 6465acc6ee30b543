"""The labels in exports, compared with today's (docs/quality.md): by export and by pair."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from corpus.models import ExportRecord, Pair
from judges.models import Campaign
from store.sql import fetch_rows

TRAIN = "train"
LabelCount = tuple[str, str, int, int]  # Split, origin, number of labels, number of those that changed since.
_OF_PAIR = """
SELECT record, split, grade, origin, now FROM held_label
WHERE query_id = %(query)s AND pair = %(pair)s ORDER BY export, record
"""
_COUNTS = """
SELECT export, split, origin, count(*), count(*) FILTER (WHERE has_changed) FROM held_label
WHERE export = ANY(%(exports)s) GROUP BY 1, 2, 3 ORDER BY 1, 2 DESC, 3
"""
_ROWS = """
SELECT c.name, q.external_id, d.external_id, h.split, h.grade, h.origin, h.now, h.origin_now, h.pair
FROM held_label h JOIN corpus_pair p ON p.id = h.pair JOIN corpus_query q ON q.id = p.query_id
JOIN corpus_document d ON d.id = p.document_id JOIN corpus_collection c ON c.id = p.collection_id
WHERE h.export = %(export)s AND (%(all)s OR h.has_changed)
ORDER BY h.split DESC, c.name, q.external_id COLLATE "C", d.external_id COLLATE "C" LIMIT %(limit)s
"""
_CAMPAIGNS = """
SELECT DISTINCT w.campaign_id FROM held_label h
JOIN judges_work w ON w.pair_id = h.pair AND w.state = 'labelled'
JOIN judges_campaign c ON c.id = w.campaign_id AND c.kind = 'judging'
WHERE h.export = ANY(%(exports)s)
"""


@dataclass(frozen=True, slots=True)
class ExportedLabel:
    """A label in an export. `grade` is None in an export of judgments; `now` is None for a deleted label."""

    record: ExportRecord
    split: str
    grade: int | None
    origin: str
    now: int | None

    @property
    def has_changed(self) -> bool:
        """Whether the label differs from today's."""
        return self.grade is not None and self.grade != self.now


def list_label_exports(pair: Pair) -> list[ExportedLabel]:
    """Return the pair's label or judgments in each export that contains them, oldest export first."""
    rows = fetch_rows(_OF_PAIR, pair=pair.pk, query=pair.query_id)
    records = ExportRecord.objects.in_bulk([row[0] for row in rows])
    return [ExportedLabel(records[record], *rest) for record, *rest in rows]


def count_exported_labels(exports: Iterable[int]) -> dict[int, list[LabelCount]]:
    """Return the number of labels in each export, by export id, in one statement."""
    parts: dict[int, list[LabelCount]] = {export: [] for export in exports}
    if not parts:
        return {}
    for export, split, origin, labels, changed in fetch_rows(_COUNTS, exports=list(parts)):
        parts[export].append((split, origin, labels, changed))
    return parts


def read_exported_labels(export: int, *, everything: bool, limit: int | None = None) -> list[tuple[Any, ...]]:
    """Return an export's labels, or only those that changed since, the training split first.

    Rows of (collection, query id, document id, split, grade, origin, grade of now, origin of now, pair).
    """
    return fetch_rows(_ROWS, export=export, all=everything, limit=limit)


def list_campaigns(exports: Sequence[int]) -> list[Campaign]:
    """Return the campaigns that labelled pairs of the exports, oldest first."""
    rows = fetch_rows(_CAMPAIGNS, exports=list(exports))
    return list(Campaign.objects.select_related("collection").filter(pk__in=[pk for (pk,) in rows]).order_by("pk"))


def find_exports(hashes: Sequence[str]) -> dict[str, list[ExportRecord]]:
    """Return exports by the hash of their manifest, which is equal where rows and options are."""
    exports: dict[str, list[ExportRecord]] = {}
    rows = ExportRecord.objects.filter(sha256__in=[sha256 for sha256 in hashes if sha256]).select_related("collection")
    for record in rows.order_by("export", "pk"):
        records = exports.setdefault(record.sha256, [])
        if all(other.export != record.export for other in records):
            records.append(record)
    return exports
