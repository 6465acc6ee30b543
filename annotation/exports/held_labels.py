"""Record of the labels that an export holds, written in the transaction that reads them (docs/lineage.md)."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection

from annotation.exports.rows import CHOSEN_AGGREGATED, CHOSEN_LABELS
from annotation.exports.sets.rows import SetQuery
from annotation.label_sources.aggregated_labels import AggregatedLabels
from annotation.label_sources.choices import MADE_OF_GRADES
from annotation.label_sources.statements import PAIRS
from annotation.models.snapshots import Snapshot
from corpus.models import ExportedLabels, ExportRecord

BATCH = 1_000
_INSERT = """INSERT INTO corpus_exportedlabels (record_id, query_id, split, pairs, grades, origins)
SELECT %(record)s, query, '', array_agg(pair ORDER BY pair), array_agg(grade ORDER BY pair),
       array_agg(origin ORDER BY pair)
FROM ({held}) held GROUP BY query"""
_JUDGED = f"""SELECT DISTINCT q.id AS query, p.id AS pair, NULL::smallint AS grade, '' AS origin
FROM current_judgment j JOIN corpus_assessor a ON a.id = j.assessor_id AND a.collection_id = %(collection)s
{PAIRS.format(of="j")} WHERE j.aspect_id IS NULL"""
_VOTED = f"""SELECT DISTINCT q.id, p.id, NULL::smallint, '' FROM counted_attempt v
JOIN judges_campaign c ON c.id = v.campaign_id AND c.collection_id = %(collection)s {PAIRS.format(of="v")}
WHERE v.role = 'vote' AND v.outcome = 'labelled'"""
# Of exports without labels: the pairs whose judgments they hold.
_WITHOUT_LABELS = {"judgments": f"{_JUDGED} UNION {_VOTED}", "marks": f"{_JUDGED} AND j.spans IS NOT NULL"}
_LABELS = f"SELECT q.id AS query, p.id AS pair, l.grade, l.origin {CHOSEN_LABELS}"
_AGGREGATED = f"""SELECT q.id AS query, p.id AS pair,
CASE WHEN %(by_grades)s THEN NULL ELSE l.grade END AS grade, l.origin {CHOSEN_AGGREGATED}"""


def hold_rows(snapshot: Snapshot, left_out: Sequence[int], aggregated: AggregatedLabels | None = None) -> None:
    """Write what an export of one file holds. Nothing where the snapshot has no record: it locks nothing then."""
    statement = _WITHOUT_LABELS.get(snapshot.format, _AGGREGATED if aggregated is not None else _LABELS)
    for record in _empty_records(snapshot).values():
        parameters = {
            "record": record.pk,
            "collection": snapshot.collection_id,
            "origins": snapshot.options["origins"],
            "left_out": list(left_out),
            # What all grades make is no label of the collection, which may become another one.
            "by_grades": snapshot.options["aggregate"] in MADE_OF_GRADES,
            **(aggregated.columns if aggregated is not None else {}),
        }
        with connection.cursor() as cursor:
            cursor.execute(_INSERT.format(held=statement), parameters)


def hold_sets(snapshot: Snapshot, sides: Mapping[str, Sequence[SetQuery]], *, as_judgments: bool = False) -> None:
    """Write which labels stand in which split of a training set; pairs that nobody judged have none.

    `as_judgments`: its labels are made of grades, or are those of a version of the qrels: only the pairs are noted.
    """
    records = _empty_records(snapshot)
    if not records:
        return
    found = (
        ExportedLabels(record=records[query.source], query_id=query.key, split=split, **_columns(query, as_judgments))
        for split, queries in sides.items()
        for query in queries
        if any(row.pair and not row.assumed for row in query.rows)
    )
    ExportedLabels.objects.bulk_create(found, batch_size=BATCH)


def _columns(query: SetQuery, as_judgments: bool) -> dict[str, list[Any]]:
    rows = sorted((row for row in query.rows if row.pair and not row.assumed), key=lambda row: row.pair)
    return {
        "pairs": [row.pair for row in rows],
        "grades": [None if as_judgments else row.grade for row in rows],
        "origins": [row.origin for row in rows],
    }


def _empty_records(snapshot: Snapshot) -> dict[str, ExportRecord]:
    """Return the export's records by collection, without what a worker that died may have written."""
    if snapshot._state.adding:  # a preview
        return {}
    ExportedLabels.objects.filter(record__export=snapshot.pk).delete()
    records = ExportRecord.objects.filter(export=snapshot.pk).select_related("collection")
    return {record.collection.name: record for record in records}
