"""The page section on ranking uncertainty: how far unjudged pairs could move systems, and open orders."""

from collections import Counter
from typing import Any

from django.utils.translation import gettext as _

from benchmark.report.naming import describe_weights, label_in
from benchmark.report.systems import figures
from benchmark.report.systems.chosen import StoredReport
from charts.downloads import DownloadTable

SHOWN = 60  # Pairs of systems on the page; the downloaded table has all.


def show_bounds(stored: StoredReport) -> dict[str, Any]:
    """Return the context of a stored report: a line for each system, and the open orders."""
    bounds = stored.result["safety"]
    open_of = Counter(run for pair in bounds["unsettled"] for run in pair[:2])
    lines = [
        {**system, "name": stored.name(system["run"]), "open": open_of[system["run"]]} for system in bounds["systems"]
    ]
    lines.sort(key=lambda line: (-line["value"], line["name"]))
    position_of = {line["run"]: position for position, line in enumerate(lines)}
    # In each pair the system that is ahead today comes first; the closest pairs come first.
    unsettled = [sorted((position_of[first], position_of[second])) for first, second in bounds["unsettled"]]
    pairs = [(lines[ahead], lines[behind]) for ahead, behind in unsettled]
    pairs.sort(key=lambda pair: (pair[0]["value"] - pair[1]["value"], pair[0]["name"], pair[1]["name"]))
    k, label = stored.k, label_in(stored.result, figures.MEASURE)
    header = (_("system"), f"Judged@{k}", label, _("at least"), _("at most"), _("undecided orders"))
    rows = tuple(tuple(line[key] for key in ("name", "judged", "value", "low", "high", "open")) for line in lines)
    names = (_("currently ahead"), _("currently behind"), _("difference in %(measure)s") % {"measure": label})
    orders = tuple((first["name"], second["name"], first["value"] - second["value"]) for first, second in pairs)
    return {
        "lines": lines,
        "unsettled": pairs[:SHOWN],
        "left_out": max(0, len(pairs) - SHOWN),
        "open": len(pairs),
        "all": len(pairs) + int(bounds["settled"]),
        "unjudged": int(bounds["unjudged"]),
        "sendable": len(bounds.get("first", [])),
        "chart": figures.bounds_chart(stored),
        "tables": [
            DownloadTable("safety", _("Ranking uncertainty"), header, rows),
            DownloadTable("unsettled", _("Undecided orders"), names, orders, 2),
        ],
        "k": k,
        "label": label,
        "weights_words": describe_weights(stored.result),
    }
