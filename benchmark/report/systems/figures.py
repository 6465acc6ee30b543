"""Charts of the benchmark's pages, drawn from stored reports."""

from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from benchmark.report.naming import label_in
from benchmark.report.systems.chosen import StoredReport, version_title
from benchmark.report.tabling import headline_result
from charts import BumpPlace, Chart, IntervalSpan, draw_bump, draw_intervals, draw_lines

MEASURE = "ndcg"  # The default measure by which systems are ordered.


def source_line(stored: StoredReport, queries: int | None = None) -> str:
    """Return the source line of a downloaded chart. `queries`: their number, where the chart is not of all."""
    report = stored.report
    count = len(stored.result.get("queries", [])) if queries is None else queries
    words = _("%(collection)s, qrels %(before)s and %(after)s, k = %(k)s, %(queries)s queries") % {
        "collection": report.collection.name,
        "before": version_title(report.before),
        "after": version_title(report.after),
        "k": stored.k,
        "queries": f"{count:,}",
    }
    return _("%(source)s, weighted by the query log's counts") % {"source": words} if stored.weights else words


def bounds_chart(stored: StoredReport) -> Chart:
    """Draw the bounds of each system's nDCG@k, the best system first."""
    bounds = stored.result["safety"]
    open_runs = {run for pair in bounds["unsettled"] for run in pair[:2]}
    systems = sorted(bounds["systems"], key=lambda system: (-system["value"], stored.name(system["run"])))
    spans = [
        IntervalSpan(
            stored.name(system["run"]),
            system["value"],
            system["low"],
            system["high"],
            system["run"] in open_runs,
            _address(stored, system),
        )
        for system in systems
    ]
    settled_count, open_count = int(bounds.get("settled", 0)), len(bounds["unsettled"])
    summary = ngettext(
        "Dot: nDCG@%(k)s on these qrels. Bar: where judging the unjudged documents could move it. %(open)s of %(all)s "
        "pair of systems could swap places.",
        "Dot: nDCG@%(k)s on these qrels. Bar: where judging the unjudged documents could move it. %(open)s of %(all)s "
        "pairs of systems could swap places.",
        settled_count + open_count,
    ) % {"k": stored.k, "all": f"{settled_count + open_count:,}", "open": f"{open_count:,}"}
    label = label_in(stored.result, MEASURE)
    heading = _("Bounds of %(measure)s") % {"measure": label}
    return draw_intervals("bounds", heading, spans, x=label, summary=summary, source=source_line(stored))


def _address(stored: StoredReport, system: dict[str, Any]) -> str:
    return reverse("system", args=[stored.report.collection.name, system["run"]])


def bump_chart(stored: StoredReport, key: str) -> Chart:
    """Draw how the systems' ranks change between versions, over the headline's queries."""
    name, headline = label_in(stored.result, key), headline_result(stored.result)
    places = []
    for system in headline["systems"]:
        value, name_of = system["values"][key], stored.name(system["run"])
        ranks = (value["rank_before"], value["rank_after"], value["before"], value["after"])
        places.append(BumpPlace(name_of, *ranks, address=_address(stored, system)))
    heading = _("Ranks by %(measure)s, before and after") % {"measure": name}
    queries = None if headline is stored.result else int(stored.result["common"]["queries"])
    return draw_bump("ranks", heading, places, x=(_("before"), _("after")), y=name, source=source_line(stored, queries))


def _pool_curves(
    stored: StoredReport,
    key: str,
    title: str,
    curves: dict[str, list[dict[str, Any]]],
    field: str,
    y: str,
    summary: str,
) -> Chart:
    """Draw `field` of each point over the number of systems in the pool, with the band of the orders."""
    low, high = ("holes_low", "holes_high") if field == "holes" else ("low", "high")
    lines = {name: [(point["systems"], point[field]) for point in rows] for name, rows in curves.items()}
    bands = {name: [(point["systems"], point[low], point[high]) for point in rows] for name, rows in curves.items()}
    x = _("other systems in the pool") if field == "value" else _("systems in the pool")
    source = source_line(stored)
    return draw_lines(key, title, lines, bands=bands, x=x, y=y, low=0.0, summary=summary, source=source)


def growth_chart(stored: StoredReport) -> Chart | None:
    """Draw how the number of known holes grows as systems join the pool, over seeded orders."""
    rows = [row for row in stored.result.get("growth", []) if row.get("rate") is not None]
    if not rows:
        return None
    name, title = _("growth rate"), _("Growth rate of the holes as systems join the pool")
    ends = {"first": f"{rows[0]['rate']:.1%}", "last": f"{rows[-1]['rate']:.1%}"}
    if rows[-1]["systems"] == stored.result["growth"][-1]["systems"]:
        summary = _("The second system increases the known holes by %(first)s, the last one by %(last)s.") % ends
    else:
        summary = _("A single system finds every hole, so the last step has no growth rate.")
    return _pool_curves(stored, "growth", title, {name: rows}, "rate", name, summary)


def holes_chart(stored: StoredReport) -> Chart | None:
    """Draw how many holes are known as systems join the pool, over seeded orders."""
    rows = stored.result.get("growth", [])
    if not rows:
        return None
    name, title = _("holes"), _("Holes found as systems join the pool")
    summary = _(
        "On average, a single system finds %(first)s of them; all %(systems)s systems together find %(last)s."
    ) % {
        "first": f"{rows[0]['holes']:,.0f}",
        "last": f"{rows[-1]['holes']:,.0f}",
        "systems": len(rows),
    }
    return _pool_curves(stored, "holes", title, {name: rows}, "holes", name, summary)


def marginal_chart(stored: StoredReport) -> Chart | None:
    """Draw how much a system's own values depend on its being in the pool, over seeded orders."""
    curves: dict[str, list[dict[str, Any]]] = stored.result.get("marginal") or {}
    names = {"hit": f"Hit@{stored.k}", "ndcg": f"nDCG@{stored.k}", "recall": f"Recall@{stored.k}"}
    measured_curves = {names[key]: [row for row in rows if row["value"] is not None] for key, rows in curves.items()}
    measured_curves = {name: rows for name, rows in measured_curves.items() if rows}
    if not measured_curves:
        return None
    title = _("Marginal contribution: how much a system's own pairs change its measures")
    ends = ", ".join(
        f"{name} {rows[0]['value']:.4f}, {rows[-1]['value']:.4f}" for name, rows in measured_curves.items()
    )
    summary = _(
        "How much a system's own pairs change its measures, from a pool with one other "
        "system to a pool with all systems: %(ends)s."
    ) % {"ends": ends}
    return _pool_curves(stored, "marginal", title, measured_curves, "value", _("marginal contribution"), summary)
