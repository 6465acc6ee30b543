"""One system: its values before and after, where they changed most, the holes it brought, and what it took."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from django.db import connection

from benchmark.models import Run
from benchmark.report import reports
from benchmark.report.naming import label_in
from benchmark.runs.costs import run_cost
from benchmark.systems import chosen
from benchmark.systems.chosen import StoredReport
from benchmark.systems.figures import MEASURE
from corpus.models import Collection, Document, Query

SHOWN = 20  # Queries of a list.
HOLES = 30  # Holes that are named.

# LIMIT 1 of what is unique: each row is looked up by its index, also before the tables' statistics are known.
NEW_AND_RELEVANT = """
SELECT q.id, q.external_id, q.text, d.id, d.external_id, d.title, one.rank, now.grades[one.at], now.origins[one.at]
FROM unnest(%(keys)s::bigint[]) WITH ORDINALITY AS asked(query, place)
CROSS JOIN LATERAL (
    SELECT * FROM benchmark_ranking WHERE run_id = %(run)s AND query_id = asked.query LIMIT 1
) r
CROSS JOIN LATERAL (
    SELECT * FROM benchmark_qrelsrow WHERE qrels_id = %(after)s AND query_id = asked.query LIMIT 1
) now
LEFT JOIN LATERAL (
    SELECT * FROM benchmark_qrelsrow WHERE qrels_id = %(before)s AND query_id = asked.query LIMIT 1
) was ON true
CROSS JOIN LATERAL (
    SELECT document, rank, array_position(now.documents, document) AS at
    FROM unnest(r.documents[:%(k)s]) WITH ORDINALITY AS returned(document, rank)
) one
JOIN corpus_query q ON q.id = asked.query JOIN corpus_document d ON d.id = one.document
WHERE now.grades[one.at] >= %(relevant)s AND NOT one.document = ANY (coalesce(was.documents, '{}'))
ORDER BY asked.place, one.rank
"""


class Hole(NamedTuple):
    """A relevant document among the first k of a query that the qrels before did not know."""

    query: Query
    document: Document
    rank: int
    grade: int
    origin: str


@dataclass(frozen=True)
class SystemPage:
    """What the page shows of a run. Without a report there are only the run and its cost."""

    run: Run
    cost: dict[str, Any]
    stored: StoredReport | None = None
    values: Sequence[tuple[str, str, dict[str, Any]]] = ()  # measure, its name, and before, after, change
    missing: int = 0  # queries for which it returned nothing: they count 0
    changes: Sequence[dict[str, Any]] = ()  # query, before, after, change
    holes: Sequence[Hole] = ()
    more_holes: int = 0


def system_page(collection: Collection, run: Run, *, whole: str = "") -> SystemPage:
    """Read a system's page in about twelve statements. `whole`: the table that is saved with all its rows."""
    newest = (chosen.newest_report(collection, compares=compares) for compares in (True, False))
    stored = (chosen.stored_report(report, [run]) for report in newest)
    report = next((one for one in stored if one is not None and one.is_ready), None)
    systems = report.result["systems"] if report else []
    mine = next((one for one in systems if one["run"] == run.pk), None)
    if report is None or mine is None:
        return SystemPage(run, run_cost(run))
    shown = [
        (key, label_in(report.result, key), chosen.complete_figures(mine["values"][key]))
        for key in report.result["measures"]
    ]
    holes, more = _holes_by_query(report, run, whole=whole == "holes")
    changes = _largest_changes(report, run, None if whole == "changes" else SHOWN)
    return SystemPage(run, run_cost(run), report, shown, mine["missing"], changes, holes, more)


def _largest_changes(report: StoredReport, run: Run, most: int | None) -> list[dict[str, Any]]:
    """The queries whose nDCG@k changed most, largest first; None: all that changed."""
    before, after = reports.query_values(report.report, run, MEASURE)
    moved = np.abs(after - before)
    order = [int(at) for at in np.argsort(-moved, kind="stable")[:most] if moved[at] > 1e-9]
    keys: list[int] = [report.result["queries"][at] for at in order]
    queries = Query.objects.in_bulk(keys)  # a query may be gone since the report was made
    return [
        {"query": queries[key], "before": was, "after": now, "change": now - was}
        for key, was, now in zip(keys, before[order].tolist(), after[order].tolist(), strict=True)
        if key in queries
    ]


def _holes_by_query(report: StoredReport, run: Run, *, whole: bool) -> tuple[list[Hole], int]:
    """Holes of the queries that have most of them, and of how many queries more there are some. `whole`: all."""
    _before, shares = reports.query_values(report.report, run, "hole")
    order = [int(at) for at in np.argsort(-shares, kind="stable")[: None if whole else SHOWN] if shares[at] > 0]
    shown = _new_and_relevant(report, run, [report.result["queries"][at] for at in order])
    shown = shown if whole else shown[:HOLES]
    return shown, int((shares > 0).sum()) - len({hole.query.pk for hole in shown})


def _new_and_relevant(report: StoredReport, run: Run, keys: Sequence[int]) -> list[Hole]:
    """Holes in the order of the queries, then of the ranking; one statement even for some thousand queries."""
    values: dict[str, int | list[int]] = {
        "keys": list(keys),
        "run": run.pk,
        "before": report.report.before_id,
        "after": report.report.after_id,
        "k": report.k,
        "relevant": int(report.result.get("relevant_from", 1)),
    }
    with connection.cursor() as cursor:
        cursor.execute(NEW_AND_RELEVANT, values)
        return [
            Hole(
                Query(pk=query, external_id=called, text=text),
                Document(pk=document, external_id=name, title=title),
                rank,
                grade,
                origin,
            )
            for query, called, text, document, name, title, rank, grade, origin in cursor.fetchall()
        ]
