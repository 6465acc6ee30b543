"""Labels in exports, against the labels of now (docs/lineage.md): read by export and by pair, never by date."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from corpus.models import ExportRecord, Pair
from judges.models import Campaign

TRAIN = "train"
HeldPart = tuple[str, str, int, int]  # Split, origin, labels, and how many of them changed since.
# The label of now is read as the export would read it today: policies' alone where it was made of theirs.
_NOW = "CASE WHEN r.by_policies THEN policy.grade ELSE l.grade END"
_HELD = """
FROM corpus_exportrecord r JOIN corpus_exportedlabels e ON e.record_id = r.id
CROSS JOIN LATERAL unnest(e.pairs, e.grades, e.origins) AS held (pair, grade, origin)
LEFT JOIN corpus_label l ON l.pair_id = held.pair AND l.aspect_id IS NULL
LEFT JOIN LATERAL (
    SELECT j.grade FROM current_judgment j JOIN corpus_assessor a ON a.id = j.assessor_id AND a.kind = 'policy'
    WHERE r.by_policies AND j.pair_id = held.pair AND j.aspect_id IS NULL AND j.step <> 'adjudication'
    ORDER BY j.id DESC LIMIT 1) policy ON r.by_policies
"""
_CHANGED = f"held.grade IS NOT NULL AND held.grade IS DISTINCT FROM {_NOW}"
_OF_PAIR = f"""SELECT r.id, e.split, held.grade, held.origin, {_NOW} {_HELD}
WHERE e.query_id = %(query)s AND held.pair = %(pair)s ORDER BY r.export, r.id"""
_COUNTS = f"""SELECT r.export, e.split, held.origin, count(*), count(*) FILTER (WHERE {_CHANGED}) {_HELD}
WHERE r.export = ANY(%(exports)s) GROUP BY 1, 2, 3 ORDER BY 1, 2 DESC, 3"""
_ROWS = f"""SELECT c.name, q.external_id, d.external_id, e.split, held.grade, held.origin, {_NOW}, l.origin, held.pair
{_HELD} JOIN corpus_pair p ON p.id = held.pair JOIN corpus_query q ON q.id = p.query_id
JOIN corpus_document d ON d.id = p.document_id JOIN corpus_collection c ON c.id = p.collection_id
WHERE r.export = %(export)s AND (%(all)s OR {_CHANGED})
ORDER BY e.split DESC, c.name, q.external_id COLLATE "C", d.external_id COLLATE "C" LIMIT %(limit)s"""
_CAMPAIGNS = f"""SELECT DISTINCT w.campaign_id {_HELD}
JOIN judges_work w ON w.pair_id = held.pair AND w.state = 'labelled'
JOIN judges_campaign c ON c.id = w.campaign_id AND c.kind = 'judging'
WHERE r.export = ANY(%(exports)s)"""


@dataclass(frozen=True, slots=True)
class HeldLabel:
    """A label as an export holds it. `grade` None: the export holds judgments; `now` None: the label is gone."""

    record: ExportRecord
    split: str
    grade: int | None
    origin: str
    now: int | None

    @property
    def has_changed(self) -> bool:
        """Return whether the label is another one by now."""
        return self.grade is not None and self.grade != self.now


def list_holders(pair: Pair) -> list[HeldLabel]:
    """Return the exports that hold the pair's label or judgments, oldest first."""
    rows = _fetch(_OF_PAIR, {"pair": pair.pk, "query": pair.query_id})
    records = ExportRecord.objects.in_bulk([row[0] for row in rows])
    return [HeldLabel(records[record], *rest) for record, *rest in rows]


def count_held(exports: Iterable[int]) -> dict[int, list[HeldPart]]:
    """Return how many labels exports hold, by their ids. One statement."""
    found: dict[int, list[HeldPart]] = {export: [] for export in exports}
    if not found:
        return {}
    for export, split, origin, labels, changed in _fetch(_COUNTS, {"exports": list(found)}):
        found[export].append((split, origin, labels, changed))
    return found


def read_held(export: int, *, everything: bool, limit: int | None = None) -> list[tuple[Any, ...]]:
    """Return an export's labels, or those that changed since, train first.

    Rows of (collection, query id, document id, split, grade, origin, grade of now, origin of now, pair).
    """
    return _fetch(_ROWS, {"export": export, "all": everything, "limit": limit})


def list_campaigns(exports: Sequence[int]) -> list[Campaign]:
    """Return the campaigns that labelled pairs of the exports, oldest first."""
    rows = _fetch(_CAMPAIGNS, {"exports": list(exports)})
    return list(Campaign.objects.select_related("collection").filter(pk__in=[pk for (pk,) in rows]).order_by("pk"))


def find_exports(hashes: Sequence[str]) -> dict[str, list[ExportRecord]]:
    """Return the exports by the hash of their manifest: two of the same rows and options have the same."""
    found: dict[str, list[ExportRecord]] = {}
    for record in _by_hash(hashes):
        known = found.setdefault(record.sha256, [])
        if all(one.export != record.export for one in known):
            known.append(record)
    return found


def _by_hash(hashes: Sequence[str]) -> Iterator[ExportRecord]:
    rows = ExportRecord.objects.filter(sha256__in=[one for one in hashes if one]).select_related("collection")
    yield from rows.order_by("export", "pk")


def _fetch(sql: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return list(cursor.fetchall())
