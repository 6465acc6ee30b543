"""One system: its values before and after, where they changed most, the holes it brought, and what it took."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from django.db import connection
from django.db.models import Avg, Count, Sum

from benchmark.models import Ranking, ReportValues, Run
from benchmark.report.naming import label_in
from benchmark.systems import chosen
from benchmark.systems.chosen import StoredReport
from benchmark.systems.figures import MEASURE
from corpus.models import Collection, Query
from judges.costs import ledger
from judges.costs.accounting import Paid
from judges.models import Campaign

SHOWN = 20
"""Queries of a list."""
HOLES = 30
"""Holes that are named."""

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
"""LIMIT 1 of what is unique: each row is looked up by its index, also before the tables' statistics are known."""


@dataclass(frozen=True)
class QueryChange:
    """A query whose value changed."""

    query: Query
    before: float
    after: float

    @property
    def change(self) -> float:
        """After minus before."""
        return self.after - self.before


class Named(NamedTuple):
    """A query with its text, or a document with its title."""

    pk: int
    external_id: str
    text: str


class Hole(NamedTuple):
    """A relevant document among the first k of a query that the qrels before did not know."""

    query: Named
    document: Named
    rank: int
    grade: int
    origin: str


@dataclass(frozen=True)
class Cost:
    """What a run took. `seconds`: mean of the queries whose time is known; None: of none."""

    queries: int
    timed: int
    seconds: float | None
    tokens_in: int
    tokens_out: int
    calls: int = 0
    paid: Paid | None = None
    """None: nobody was asked."""


@dataclass(frozen=True)
class SystemPage:
    """What the page shows. Without a report there are only the run and its cost."""

    run: Run
    cost: Cost
    stored: StoredReport | None
    values: list[tuple[str, str, dict[str, Any]]]
    """Measure, its name, and before, after, change."""
    missing: int
    """Queries for which it returned nothing: they count 0."""
    changes: list[QueryChange]
    holes: list[Hole]
    more_holes: int


def system_page(collection: Collection, run: Run, *, whole: str = "") -> SystemPage:
    """About twelve statements, whatever the number of queries. `whole`: the table that is saved with all its rows."""
    runs = [run]
    report = chosen.stored_report(chosen.newest_report(collection, compares=True), runs)
    if report is None or not report.is_ready:
        report = chosen.stored_report(chosen.newest_report(collection, compares=False), runs)
    mine = _system_result(report, run)
    if report is None or mine is None:
        return SystemPage(run, _run_cost(run), None, [], 0, [], [], 0)
    shown = [
        (key, label_in(report.result, key), chosen.complete_figures(mine["values"][key]))
        for key in report.result["measures"]
    ]
    holes, more = _holes_by_query(report, run, whole=whole == "holes")
    changes = _largest_changes(report, run, None if whole == "changes" else SHOWN)
    return SystemPage(run, _run_cost(run), report, shown, mine["missing"], changes, holes, more)


def _system_result(report: StoredReport | None, run: Run) -> dict[str, Any] | None:
    if report is None or not report.is_ready:
        return None
    return next((one for one in report.result["systems"] if one["run"] == run.pk), None)


def _run_cost(run: Run) -> Cost:
    found = Ranking.objects.filter(run=run).aggregate(
        n=Count("pk"), timed=Count("seconds"), mean=Avg("seconds"), came=Sum("tokens_in"), went=Sum("tokens_out")
    )
    cost = Cost(found["n"], found["timed"], found["mean"], found["came"] or 0, found["went"] or 0)
    if not run.campaign:
        return cost
    spent = ledger.sum_rows("", ledger.ledger_rows(Campaign(pk=run.campaign)))
    return replace(cost, calls=spent.calls, paid=spent.paid)


def _query_values(report: StoredReport, run: Run, measure: str) -> tuple[np.ndarray, np.ndarray] | None:
    row = ReportValues.objects.filter(report=report.report, run=run, measure=measure).first()
    return None if row is None else (np.array(row.before, dtype=float), np.array(row.after, dtype=float))


def _queries_by_key(keys: Sequence[int]) -> dict[int, Query]:
    return Query.objects.in_bulk(keys)


def _largest_changes(report: StoredReport, run: Run, most: int | None) -> list[QueryChange]:
    """The queries whose nDCG@k changed most, largest first; None: all that changed."""
    found = _query_values(report, run, MEASURE)
    if found is None or not len(found[1]):
        return []
    before, after = found
    moved = np.abs(after - before)
    order = [int(at) for at in np.argsort(-moved, kind="stable")[:most] if moved[at] > 1e-9]
    keys: list[int] = [report.result["queries"][at] for at in order]
    queries = _queries_by_key(keys)
    return [
        QueryChange(queries[key], float(before[at]), float(after[at]))
        for key, at in zip(keys, order, strict=True)
        if key in queries
    ]


def _holes_by_query(report: StoredReport, run: Run, *, whole: bool) -> tuple[list[Hole], int]:
    """Holes of the queries that have most of them, and of how many queries more there are some. `whole`: all."""
    found = _query_values(report, run, "hole")
    if found is None:
        return [], 0
    shares = found[1]
    order = [int(at) for at in np.argsort(-shares, kind="stable")[: None if whole else SHOWN] if shares[at] > 0]
    shown = _new_and_relevant(report, run, [report.result["queries"][at] for at in order])
    shown = shown if whole else shown[:HOLES]
    return shown, int((shares > 0).sum()) - len({hole.query.pk for hole in shown})


def _new_and_relevant(report: StoredReport, run: Run, keys: Sequence[int]) -> list[Hole]:
    """In the order of the queries and then of the ranking. One statement: a file has all of some thousand queries."""
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
            Hole(Named(query, called, text), Named(document, name, title), rank, grade, origin)
            for query, called, text, document, name, title, rank, grade, origin in cursor.fetchall()
        ]
