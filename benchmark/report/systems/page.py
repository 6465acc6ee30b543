"""Data of a system's page: measures before and after, largest changes, holes, cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from django.db import connection

from benchmark.models import QrelsRow, Run
from benchmark.report import reports
from benchmark.report.naming import describe_weights, label_in
from benchmark.report.systems import chosen
from benchmark.report.systems.chosen import StoredReport
from benchmark.report.systems.figures import MEASURE
from benchmark.report.tabling import headline_result
from benchmark.runs.costs import run_cost
from corpus.models import Collection, Document, Query
from store.sql import read_sql

SHOWN = 20  # Queries in a list.
HOLES = 30  # Holes in a list.

NEW_AND_RELEVANT = read_sql(__file__, "read_new_relevant")


class Hole(NamedTuple):
    """A relevant document among the first k of a query that the earlier qrels did not judge.

    `was_judged`: they judged other documents of the query. Otherwise every relevant document is a hole.
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
    missing: int = 0  # queries without a result, which count 0
    queries: int = 0
    common: int = 0  # of these, judged in both versions and answered by every system: the values are of them, if any
    one_sided: int = 0  # of these, judged in only one version: they have no change
    changes: Sequence[dict[str, Any]] = ()  # query, before, after, change
    holes: Sequence[Hole] = ()
    more_holes: int = 0
    compares: bool = True  # Two versions of the qrels; otherwise one, whose means have intervals.
    weights_words: str = ""  # By what its means are weighted; "" for plain ones.


def system_page(collection: Collection, run: Run, *, whole: str = "", weights: str = "") -> SystemPage:
    """Read the data of a system's page in about twelve statements.

    `whole`: the key of a table to read in full; `weights`: COUNTS for means weighted by counts.
    """
    newest = (chosen.newest_report(collection, compares=compares, weights=weights) for compares in (True, False))
    stored = (chosen.stored_report(report, [run]) for report in newest)
    report = next((candidate for candidate in stored if candidate is not None and candidate.is_ready), None)
    compares = report is not None and report.report.before_id != report.report.after_id
    # A query that one version lacks counts 0 there; a change from or to that 0 is not an effect of judging.
    systems = (headline_result(report.result) if compares else report.result)["systems"] if report else []
    own_result = next((system for system in systems if system["run"] == run.pk), None)
    if report is None or own_result is None:
        return SystemPage(run, run_cost(run))
    position = [system["run"] for system in systems].index(run.pk)
    values = []
    for key in report.result["measures"]:
        value = chosen.complete_figures(own_result["values"][key])
        if not compares:
            intervals = report.result["intervals"].get(key)
            value["low"], value["high"] = intervals[position] if intervals else (None, None)
        values.append((key, label_in(report.result, key), value))
    holes, more = _holes_by_query(report, run, whole=whole == "holes")
    queries: list[int] = report.result["queries"]
    # The queries with judgments in both versions.
    rows, pair = QrelsRow.objects.exclude(documents=[]), (report.report.before_id, report.report.after_id)
    before, after = (set(rows.filter(qrels=version).values_list("query", flat=True)) for version in pair)
    judged = before & after
    # The judged queries whose nDCG@k changed, the largest change first.
    old, new = reports.query_values(report.report, run, MEASURE)
    magnitudes = np.abs(new - old)
    moves = (int(index) for index in np.argsort(-magnitudes, kind="stable") if magnitudes[index] > 1e-9)
    order = [index for index in moves if queries[index] in judged][: None if whole == "changes" else SHOWN]
    keys = [queries[index] for index in order]
    rows_by_key = Query.objects.in_bulk(keys)  # a query may have been deleted since the report was made
    changes = [
        {"query": rows_by_key[key], "before": value_before, "after": value_after, "change": value_after - value_before}
        for key, value_before, value_after in zip(keys, old[order].tolist(), new[order].tolist(), strict=True)
        if key in rows_by_key
    ]
    common = report.result["common"]["queries"] if compares else len(queries)
    counts = (own_result["missing"], len(queries), common, len(set(queries) - judged))
    words = describe_weights(report.result)
    return SystemPage(run, run_cost(run), report, values, *counts, changes, holes, more, compares, words)


def _holes_by_query(report: StoredReport, run: Run, *, whole: bool) -> tuple[list[Hole], int]:
    """Return holes of the queries with most of them, and the number of other queries with holes. `whole`: all holes."""
    _before, shares = reports.query_values(report.report, run, "hole")
    order = [
        int(index) for index in np.argsort(-shares, kind="stable")[: None if whole else SHOWN] if shares[index] > 0
    ]
    values: dict[str, int | list[int]] = {
        "keys": [report.result["queries"][index] for index in order],
        "run": run.pk,
        "before": report.report.before_id,
        "after": report.report.after_id,
        "k": report.k,
        "relevant": int(report.result.get("relevant_from", 1)),
    }
    with connection.cursor() as cursor:
        # In the order of the queries, then of the ranking; one statement even for some thousand queries.
        cursor.execute(NEW_AND_RELEVANT, values)
        holes = [
            Hole(
                Query(pk=query, external_id=query_name, text=text),
                Document(pk=key, external_id=name, title=title),
                *rest,
            )
            for query, query_name, text, key, name, title, *rest in cursor.fetchall()
        ][: None if whole else HOLES]
    return holes, int((shares > 0).sum()) - len({hole.query.pk for hole in holes})
