"""Comparison of two runs of the leaderboard, query by query."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

import numpy as np
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from benchmark.report.graded_runs import Floats, Ints
from benchmark.report.leaderboard import difference_of
from benchmark.report.measures import RANKING
from benchmark.report.naming import label_in
from benchmark.report.reports import query_values
from benchmark.systems.chosen import StoredReport
from benchmark.systems.figures import MEASURE, source_line
from charts import Chart, draw_differences
from charts.downloads import Cell, DownloadTable
from corpus.models import Query

TIE = 1e-9  # Values nearer than this are equal: what adding in another order moves.
PAGE = 50
ORDERS = ("largest", "wins", "losses")


def compare_runs(
    stored: StoredReport, one: int, other: int, *, measure: str, order: str, page: int
) -> dict[str, Any] | None:
    """Compare two runs of a stored leaderboard by a measure; None where it does not have both."""
    result = stored.result
    places = {system["run"]: at for at, system in enumerate(result["systems"])}
    if one not in places or other not in places or one == other:
        return None
    # What an address names and does not exist falls back to the usual one: the page is a link that people share.
    measure = measure if measure in RANKING else MEASURE
    order = order if order in ORDERS else ORDERS[0]
    first, second = (query_values(stored.report, run, measure)[1] for run in (one, other))
    differences = first - second
    names = dict(Query.objects.filter(pk__in=result["queries"]).values_list("pk", "external_id"))
    sorted_places = _sort_queries(differences, order)
    ids = [names.get(key, "") for key in result["queries"]]
    shown = sorted_places[(page - 1) * PAGE : page * PAGE]
    queries = Query.objects.in_bulk([result["queries"][at] for at in shown])
    counts = {
        "wins": int((differences > TIE).sum()),
        "ties": int((np.abs(differences) <= TIE).sum()),
        "losses": int((differences < -TIE).sum()),
    }
    told: dict[str, Any] = {
        "one": {"run": one, "name": stored.name(one), "mean": float(first.mean())},
        "other": {"run": other, "name": stored.name(other), "mean": float(second.mean())},
        "label": label_in(result, measure),
    }
    header = (_("query"), told["one"]["name"], told["other"]["name"], _("difference"))
    columns = (first, second, differences)
    rows: tuple[tuple[Cell, ...], ...] = tuple((ids[at], *(float(of[at]) for of in columns)) for at in sorted_places)
    title = _("%(measure)s of %(one)s and %(other)s by query") % {
        "measure": told["label"],
        "one": told["one"]["name"],
        "other": told["other"]["name"],
    }
    return {
        **told,
        "measure": measure,
        "measures": [(key, label_in(result, key)) for key in RANKING],
        "order": order,
        "difference": difference_of(result, measure, places[one], places[other]),
        "counts": counts,
        "queries": len(differences),
        "pairs": len(result["pairs"][measure]),
        "rows": [
            {"query": queries[key], "one": first[at], "other": second[at], "difference": differences[at]}
            for at in shown
            if (key := result["queries"][at]) in queries  # a query may be gone since
        ],
        "page": page,
        "has_more": len(sorted_places) > page * PAGE,
        "chart": _difference_chart(stored, told, differences, ids, counts),
        "table": DownloadTable("queries", title, header, rows),
        "asked": urlencode({"a": one, "b": other, "measure": measure, "order": order}),
    }


def _sort_queries(differences: Floats, order: str) -> list[int]:
    """Places of the queries: largest differences first, or the first run's wins, or losses."""
    # Stable, so that equal differences keep the order of the queries from page to page.
    key: Floats = {"largest": -np.abs(differences), "wins": -differences, "losses": differences}[order]
    places: Ints = np.argsort(key, kind="stable")
    return [int(at) for at in places]


def _difference_chart(
    stored: StoredReport, told: dict[str, Any], differences: Floats, ids: Sequence[str], counts: dict[str, int]
) -> Chart:
    one, other, label = told["one"]["name"], told["other"]["name"], told["label"]
    order, name = _sort_queries(differences, "wins"), stored.report.collection.name
    # The bars stand by size whatever the table is sorted by: they are a distribution.
    bars = [(ids[at], float(differences[at])) for at in order]
    better = _("%(run)s better: %(count)s")
    summary = ngettext(
        "%(one)s is better on %(wins)s, %(other)s on %(losses)s of %(queries)s query; %(ties)s are equal.",
        "%(one)s is better on %(wins)s, %(other)s on %(losses)s of %(queries)s queries; %(ties)s are equal.",
        len(bars),
    ) % {"one": one, "other": other, "queries": f"{len(bars):,}", **{key: f"{n:,}" for key, n in counts.items()}}
    return draw_differences(
        "differences",
        _("Difference in %(measure)s by query") % {"measure": label},
        bars,
        y=_("%(measure)s, %(one)s minus %(other)s") % {"measure": label, "one": one, "other": other},
        above=better % {"run": one, "count": f"{counts['wins']:,}"},
        below=better % {"run": other, "count": f"{counts['losses']:,}"},
        summary=summary,
        source=source_line(stored),
        addresses=[reverse("benchmark_query", args=[name, stored.result["queries"][at]]) for at in order],
    )
