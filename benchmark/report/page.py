"""Contexts of the report's page and of the leaderboard, from a stored result."""

from typing import Any

from benchmark.models import Qrels, QrelsRow
from benchmark.report import tabling, verdict
from benchmark.report.measures import RANKING
from benchmark.report.naming import label_in
from benchmark.systems import figures
from benchmark.systems.chosen import StoredReport, complete_figures
from corpus.models import Query

NAMED = 10  # Queries that are named; the others are counted.


def list_left_out(stored: StoredReport) -> list[tuple[Qrels, list[Query], int]]:
    """Queries that one version alone judges: the version, the first of them by id, and how many there are more."""
    before, after = stored.report.before, stored.report.after
    rows = QrelsRow.objects.filter(qrels__in=[before, after]).exclude(documents=[])
    judged: dict[int, set[int]] = {before.pk: set(), after.pk: set()}
    for key, query in rows.values_list("qrels", "query"):
        judged[key].add(query)
    found = []
    for version, other in ((before, after), (after, before)):
        if own := judged[version.pk] - judged[other.pk]:
            named = list(Query.objects.filter(pk__in=own).order_by("external_id")[:NAMED])
            found.append((version, named, len(own) - len(named)))
    return found


def show_report(stored: StoredReport, asked: str) -> dict[str, Any]:
    """The report by the measure that was asked for, nDCG@k unless it has an order."""
    measure = asked if asked in RANKING else figures.MEASURE
    # The figures are over the queries that every system answered and both versions judge, where there are any.
    result, first = stored.result, tabling.headline_result(stored.result)
    lines = []
    for one in first["systems"]:
        values = {key: complete_figures(value) for key, value in one["values"].items()}
        about = {"run": one["run"], "name": stored.name(one["run"]), "note": stored.notes.get(one["run"], "")}
        lines.append({**about, "missing": one["missing"], "value": values[measure], "values": values})
    # The best after filling first.
    lines.sort(key=lambda row: (-row["value"]["after"], row["name"]))
    common, queries = result["common"]["queries"], len(result["queries"])
    bump = figures.bump_chart(stored, measure)
    curves = [figures.holes_chart(stored), figures.growth_chart(stored), figures.marginal_chart(stored)]
    growth = [chart for chart in curves if chart is not None]
    return {
        "measure": measure,
        "label": label_in(result, measure),
        "measures": [(key, label_in(result, key)) for key in RANKING],
        "rows": lines,
        "mean": first["means"],
        "value": first["means"][measure],
        "order": first["order"][measure],
        "bump": bump,
        "growth": growth,
        "charts": [bump, *growth],
        "verdict": verdict.explain_verdict(result["verdict"]),
        "tables": [*tabling.report_tables(result, measure), tabling.leaderboard_table(result, measure)],
        "k": stored.k,
        "common": common,
        "is_of_common": 0 < common < queries,
        "queries": queries,
        "recall": verdict.recall_shift(result),
    }
