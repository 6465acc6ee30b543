"""Records of the labels in an export, written in the transaction that reads them."""

from collections.abc import Mapping, Sequence

from annotation.exports.label_sources.aggregated_labels import AggregatedLabels
from annotation.exports.sets.rows import SetQuery
from annotation.models.snapshots import Snapshot
from corpus.models import ExportedLabels, ExportRecord
from store.sql import execute, read_sql

BATCH = 1_000
HOLD_LABELS = read_sql(__file__, "hold_labels")
HOLD_MADE_LABELS = read_sql(__file__, "hold_made_labels")
HOLD_JUDGMENTS = read_sql(__file__, "hold_judgments")


def hold_rows(
    snapshot: Snapshot,
    origins: Sequence[str] | None,
    left_out: Sequence[int],
    aggregated: AggregatedLabels | None,
    *,
    by_grades: bool,
) -> None:
    """Record the labels of an export of one file. An export without records locks nothing."""
    statement = HOLD_MADE_LABELS if aggregated is not None else HOLD_LABELS
    if snapshot.format in ("judgments", "marks"):
        statement = HOLD_JUDGMENTS
    for record in _empty_records(snapshot).values():
        parameters = {
            "record": record.pk,
            "collection": snapshot.collection_id,
            "origins": origins,
            "left_out": list(left_out),
            "marks": snapshot.format == "marks",
            "by_grades": by_grades,
            **(aggregated.columns if aggregated is not None else {}),
        }
        execute(statement, **parameters)


def hold_sets(snapshot: Snapshot, sides: Mapping[str, Sequence[SetQuery]], *, as_judgments: bool) -> None:
    """Record the labels of each split of a training set; pairs without a judgment have none.

    `as_judgments`: the labels are aggregated or of a version of the qrels, so only the pairs are recorded.
    """
    if not (records := _empty_records(snapshot)):
        return
    exported = []
    for split, queries in sides.items():
        for query in queries:
            rows = sorted((row for row in query.rows if row.pair and not row.assumed), key=lambda row: row.pair)
            pairs, origins = [row.pair for row in rows], [row.origin for row in rows]
            grades = [None if as_judgments else row.grade for row in rows]
            if rows:
                exported.append(
                    ExportedLabels(
                        record=records[query.source],
                        query_id=query.key,
                        split=split,
                        pairs=pairs,
                        grades=grades,
                        origins=origins,
                    )
                )
    ExportedLabels.objects.bulk_create(exported, batch_size=BATCH)


def _empty_records(snapshot: Snapshot) -> dict[str, ExportRecord]:
    """Return the export's records by collection, without the labels that an interrupted worker may have written."""
    if snapshot._state.adding:  # A preview has no records.
        return {}
    ExportedLabels.objects.filter(record__export=snapshot.pk).delete()
    records = ExportRecord.objects.filter(export=snapshot.pk).select_related("collection")
    return {record.collection.name: record for record in records}
