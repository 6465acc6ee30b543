"""The page of a system: before and after, largest changes, its holes, its cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from django.db import connection

from benchmark.models import QrelsRow, Run
from benchmark.report import reports
from benchmark.report.naming import label_in
from benchmark.report.tabling import headline_result
from benchmark.runs.costs import run_cost
from benchmark.systems import chosen
from benchmark.systems.chosen import StoredReport
from benchmark.systems.figures import MEASURE
from corpus.models import Collection, Document, Query
from store.sql import read_sql

SHOWN = 20  # Queries of a list.
HOLES = 30  # Holes that are named.

NEW_AND_RELEVANT = read_sql(__file__, "read_new_relevant")


class Hole(NamedTuple):
    """A relevant document among the first k of a query that the qrels before did not know.

    `was_judged`: they judged others of this query. Where they did not, every relevant document is a hole.
    """

    query: Query
    document: Document
    rank: int
    grade: int
    origin: str
    was_judged: bool


@dataclass(frozen=True)
class SystemPage:
    """Data of a run's page. Without a report there are only the run and its cost."""

    run: Run
    cost: dict[str, Any]
    stored: StoredReport | None = None
    values: Sequence[tuple[str, str, dict[str, Any]]] = ()  # measure, its name, and before, after, change
    missing: int = 0  # queries for which it returned nothing: they count 0
    queries: int = 0
    common: int = 0  # of them, judged in both versions and answered by every system: the values' where there are any
    one_sided: int = 0  # of them, judged in one version alone: they have no change
    changes: Sequence[dict[str, Any]] = ()  # query, before, after, change
    holes: Sequence[Hole] = ()
    more_holes: int = 0
    compares: bool = True  # Two versions of the qrels; else one, whose values have the interval of their mean.


def system_page(collection: Collection, run: Run, *, whole: str = "") -> SystemPage:
    """Read a system's page in some twelve statements. `whole`: the table with all rows."""
    newest = (chosen.newest_report(collection, compares=compares) for compares in (True, False))
    stored = (chosen.stored_report(report, [run]) for report in newest)
    report = next((one for one in stored if one is not None and one.is_ready), None)
    compares = report is not None and report.report.before_id != report.report.after_id
    # A query that one version lacks counts 0 there; a change from or to that 0 is no effect of judging.
    systems = (headline_result(report.result) if compares else report.result)["systems"] if report else []
    mine = next((one for one in systems if one["run"] == run.pk), None)
    if report is None or mine is None:
        return SystemPage(run, run_cost(run))
    place = [one["run"] for one in systems].index(run.pk)
    shown = []
    for key in report.result["measures"]:
        value = chosen.complete_figures(mine["values"][key])
        if not compares:
            intervals = report.result["intervals"].get(key)
            value["low"], value["high"] = intervals[place] if intervals else (None, None)
        shown.append((key, label_in(report.result, key), value))
    holes, more = _holes_by_query(report, run, whole=whole == "holes")
    queries: list[int] = report.result["queries"]
    # The queries of which both versions judge something.
    rows, pair = QrelsRow.objects.exclude(documents=[]), (report.report.before_id, report.report.after_id)
    before, after = (set(rows.filter(qrels=version).values_list("query", flat=True)) for version in pair)
    judged = before & after
    changes = _largest_changes(report, run, judged, None if whole == "changes" else SHOWN)
    common = report.result["common"]["queries"] if compares else len(queries)
    counts = (mine["missing"], len(queries), common, len(set(queries) - judged))
    return SystemPage(run, run_cost(run), report, shown, *counts, changes, holes, more, compares)


def _largest_changes(report: StoredReport, run: Run, judged: set[int], most: int | None) -> list[dict[str, Any]]:
    """Return those of the `judged` queries whose nDCG@k changed most, largest first; `most` None: all that changed."""
    before, after = reports.query_values(report.report, run, MEASURE)
    moved = np.abs(after - before)
    asked: list[int] = report.result["queries"]
    moves = (int(at) for at in np.argsort(-moved, kind="stable") if moved[at] > 1e-9)
    order = [at for at in moves if asked[at] in judged][:most]
    keys = [asked[at] for at in order]
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
    values: dict[str, int | list[int]] = {
        "keys": [report.result["queries"][at] for at in order],
        "run": run.pk,
        "before": report.report.before_id,
        "after": report.report.after_id,
        "k": report.k,
        "relevant": int(report.result.get("relevant_from", 1)),
    }
    with connection.cursor() as cursor:
        # In the order of the queries, then of the ranking; one statement even for some thousand queries.
        cursor.execute(NEW_AND_RELEVANT, values)
        shown = [
            Hole(Query(pk=query, external_id=called, text=text), Document(pk=key, external_id=name, title=title), *rest)
            for query, called, text, key, name, title, *rest in cursor.fetchall()
        ][: None if whole else HOLES]
    return shown, int((shares > 0).sum()) - len({hole.query.pk for hole in shown})
