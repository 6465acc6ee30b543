"""Comparison of two runs of the leaderboard, query by query."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

import numpy as np
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from benchmark.measures.arrays import RANKING
from benchmark.measures.graded_runs import Floats, Ints
from benchmark.report.leaderboard import difference_of
from benchmark.report.naming import describe_outdated, describe_weights, label_in
from benchmark.report.reports import query_values
from benchmark.report.systems.chosen import StoredReport
from benchmark.report.systems.figures import MEASURE, source_line
from charts import Chart, draw_differences
from charts.downloads import Cell, DownloadTable
from corpus.models import Query

TIE = 1e-9  # Values nearer than this are equal, except for the order of summation.
PAGE = 50
ORDERS = ("largest", "wins", "losses")


def compare_runs(
    stored: StoredReport, first_run: int, second_run: int, *, measure: str, order: str, page: int
) -> dict[str, Any] | None:
    """Compare two runs of a stored leaderboard by a measure; None where it does not include both."""
    result = stored.result
    position_of = {system["run"]: position for position, system in enumerate(result["systems"])}
    if first_run not in position_of or second_run not in position_of or first_run == second_run:
        return None
    # Unknown values fall back to the defaults, because people share links to the page.
    measure = measure if measure in RANKING else MEASURE
    order = order if order in ORDERS else ORDERS[0]
    first, second = (query_values(stored.report, run, measure)[1] for run in (first_run, second_run))
    differences = first - second
    names = dict(Query.objects.filter(pk__in=result["queries"]).values_list("pk", "external_id"))
    sorted_positions = _sort_queries(differences, order)
    ids = [names.get(key, "") for key in result["queries"]]
    page_positions = sorted_positions[(page - 1) * PAGE : page * PAGE]
    queries = Query.objects.in_bulk([result["queries"][position] for position in page_positions])
    counts = {
        "wins": int((differences > TIE).sum()),
        "ties": int((np.abs(differences) <= TIE).sum()),
        "losses": int((differences < -TIE).sum()),
    }
    # The values below are the queries' own; the means are those of the leaderboard, with its weights.
    sides = {
        side: {
            "run": run,
            "name": stored.name(run),
            "mean": result["systems"][position_of[run]]["values"][measure]["after"],
        }
        for side, run in (("first", first_run), ("second", second_run))
    }
    heading: dict[str, Any] = {
        **sides,
        "label": label_in(result, measure),
    }
    pair = {"a": first_run, "b": second_run, "measure": measure}
    pair |= {"weights": stored.weights} if stored.weights else {}
    header = (_("query"), heading["first"]["name"], heading["second"]["name"], _("difference"))
    columns = (first, second, differences)
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (ids[position], *(float(column[position]) for column in columns)) for position in sorted_positions
    )
    title = _("%(measure)s of %(one)s and %(other)s by query") % {
        "measure": heading["label"],
        "one": heading["first"]["name"],
        "other": heading["second"]["name"],
    }
    return {
        **heading,
        "measure": measure,
        "more": f"&weights={stored.weights}" if stored.weights else "",
        "weights_words": describe_weights(result),
        "outdated_words": describe_outdated(result["systems"][position_of[run]] for run in (first_run, second_run)),
        "measures": [(key, label_in(result, key)) for key in RANKING],
        "order": order,
        "difference": difference_of(result, measure, position_of[first_run], position_of[second_run]),
        "counts": counts,
        "queries": len(differences),
        "pairs": len(result["pairs"][measure]),
        "rows": [
            {
                "query": queries[key],
                "first": first[position],
                "second": second[position],
                "difference": differences[position],
            }
            for position in page_positions
            if (key := result["queries"][position]) in queries  # A query may have been deleted since.
        ],
        "page": page,
        "has_more": len(sorted_positions) > page * PAGE,
        "chart": _difference_chart(stored, heading, differences, ids, counts),
        "table": DownloadTable("queries", title, header, rows),
        "pair": urlencode(pair),
        "asked": urlencode({**pair, "order": order}),
    }


def _sort_queries(differences: Floats, order: str) -> list[int]:
    """Return positions of the queries, with largest differences, or the first run's wins or losses, first."""
    # Stable, so that queries with equal differences keep their order from page to page.
    key: Floats = {"largest": -np.abs(differences), "wins": -differences, "losses": differences}[order]
    positions: Ints = np.argsort(key, kind="stable")
    return [int(position) for position in positions]


def _difference_chart(
    stored: StoredReport, heading: dict[str, Any], differences: Floats, ids: Sequence[str], counts: dict[str, int]
) -> Chart:
    first, second, label = heading["first"]["name"], heading["second"]["name"], heading["label"]
    order, name = _sort_queries(differences, "wins"), stored.report.collection.name
    # The bars are always sorted by size, because they show a distribution.
    bars = [(ids[position], float(differences[position])) for position in order]
    better = _("%(run)s better: %(count)s")
    summary = ngettext(
        "%(one)s is better on %(wins)s, %(other)s on %(losses)s of %(queries)s query; %(ties)s are equal.",
        "%(one)s is better on %(wins)s, %(other)s on %(losses)s of %(queries)s queries; %(ties)s are equal.",
        len(bars),
    ) % {"one": first, "other": second, "queries": f"{len(bars):,}", **{key: f"{n:,}" for key, n in counts.items()}}
    return draw_differences(
        "differences",
        _("Difference in %(measure)s by query") % {"measure": label},
        bars,
        y=_("%(measure)s, %(one)s minus %(other)s") % {"measure": label, "one": first, "other": second},
        above=better % {"run": first, "count": f"{counts['wins']:,}"},
        below=better % {"run": second, "count": f"{counts['losses']:,}"},
        summary=summary,
        source=source_line(stored),
        addresses=[reverse("benchmark_query", args=[name, stored.result["queries"][position]]) for position in order],
    )
