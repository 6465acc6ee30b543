"""What the report's page and the leaderboard show, from a stored result."""

from collections.abc import Mapping
from typing import Any

from benchmark.report import tabling, verdict
from benchmark.report.measures import RANKING
from benchmark.report.naming import label_in
from benchmark.systems import figures
from benchmark.systems.chosen import StoredReport, complete_figures

LOW_IS_BETTER = ("unjudged",)


def report_rows(stored: StoredReport, measure: str, result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Systems with their values, the best after filling first. `result`: the stored one, or its headline."""
    found = []
    for one in result["systems"]:
        values = {key: complete_figures(value) for key, value in one["values"].items()}
        about = {"run": one["run"], "name": stored.name(one["run"]), "note": stored.notes.get(one["run"], "")}
        found.append({**about, "missing": one["missing"], "value": values[measure], "values": values})
    return sorted(found, key=lambda row: (-row["value"]["after"], row["name"]))


def show_report(stored: StoredReport, asked: str) -> dict[str, Any]:
    """The report by the measure that was asked for, nDCG@k unless it has an order."""
    measure = asked if asked in RANKING else figures.MEASURE
    # The figures are over the queries that every system answered and both versions judge, where there are any.
    result, first = stored.result, tabling.headline_result(stored.result)
    lines = report_rows(stored, measure, first)
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
        "tables": tabling.report_tables(result, measure),
        "k": stored.k,
        "common": common,
        "is_of_common": 0 < common < queries,
        "queries": queries,
        "recall": verdict.recall_shift(result),
    }


def build_leaderboard(stored: StoredReport, asked: str, of: str) -> dict[str, Any]:
    """Every measure of every system, the best by the one that was asked for first. `of`: before, or after filling."""
    measure = asked if asked in stored.result["measures"] else figures.MEASURE
    of = "before" if of == "before" else "after"
    lines = report_rows(stored, measure, stored.result)
    # Hole@k and measures of aspects have no value before filling: such systems keep their order, behind the others.
    known = [row for row in lines if row["value"][of] is not None]
    sign = 1 if measure in LOW_IS_BETTER else -1
    known.sort(key=lambda row: (sign * row["value"][of], row["name"]))
    return {
        "measure": measure,
        "of": of,
        "columns": [(key, label_in(stored.result, key)) for key in stored.result["measures"]],
        "rows": known + [row for row in lines if row["value"][of] is None],
        "table": tabling.leaderboard_table(stored.result, measure),
        "note": verdict.recall_shift(stored.result) if measure == "recall" else "",
    }
