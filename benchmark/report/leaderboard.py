"""The leaderboard: every ready run by the newest qrels, computed once for each combination of runs and qrels."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models import F
from django.utils.translation import gettext as _

from benchmark.measures.arrays import RANKING
from benchmark.models import Report, Run
from benchmark.qrels import versions
from benchmark.report import reports, weighting
from benchmark.report.naming import ASPECTS, describe_outdated, describe_weights, label_in
from benchmark.report.systems import chosen
from benchmark.report.systems.chosen import StoredReport
from benchmark.report.systems.figures import MEASURE
from benchmark.report.weighting import MeansChoice
from benchmark.significance.paired import LEVEL
from charts.downloads import DownloadTable, Figure
from corpus.models import Collection, Query
from jobs import leases
from jobs.models import JobState

AT_ONCE = 5_000  # The most runs times queries that are computed while the reader waits, about a second.
SHOWN = ("ndcg", "recall", "hit")  # Measures beside the selected one.
LOW_FIRST = ("name", "unjudged", "seconds", "usd")


@dataclass(frozen=True)
class LeaderboardState:
    """State of the leaderboard. `current`: the report on current runs and qrels; `stored`: the newest finished one."""

    runs: list[Run]
    current: Report | None
    stored: StoredReport | None
    means: MeansChoice

    @property
    def ready(self) -> list[Run]:
        """Return the runs that are measured."""
        return [run for run in self.runs if run.state == JobState.READY]

    @property
    def in_progress(self) -> list[Run]:
        """Return the runs that are being made."""
        return [run for run in self.runs if not run.is_over]

    @property
    def is_missing(self) -> bool:
        """Return whether a report can be computed and was not requested yet."""
        return bool(self.ready) and self.current is None

    @property
    def is_moving(self) -> bool:
        """Return whether runs or the report are being computed, so that the page polls."""
        return bool(self.in_progress) or (self.current is not None and not self.current.is_over)


def load_leaderboard(collection: Collection, weights: str = "") -> LeaderboardState:
    """Load the state of the leaderboard; nothing is computed.

    `weights`: COUNTS for means weighted by the query log's counts; anything else, or no counts: plain means.
    """
    means = MeansChoice.of([collection], weights)
    mark = weighting.counts_mark(collection) if means.weights else ""
    runs, version = chosen.runs_of(collection), versions.latest_version(collection)
    ready = [run for run in runs if run.state == JobState.READY]
    current = None
    if ready and version is not None:
        current = reports.find_report(collection, version, version, ready, chosen.common_depth(ready), mark)
    report = current
    if current is None or current.state != JobState.READY:
        rows = Report.objects.filter(collection=collection, after=F("before"), state=JobState.READY)
        rows = weighting.reports_by(means.weights, rows)
        report = rows.select_related("before", "after").order_by("-pk").first()
    return LeaderboardState(runs, current, chosen.stored_report(report, runs), means)


def make_small(report: Report) -> None:
    """Compute a waiting report in this process, if it is small enough for a reader to wait."""
    queries = report.after.counts.get("queries") or Query.objects.filter(collection=report.collection_id).count()
    if not report.is_over and len(report.options["runs"]) * queries <= AT_ONCE:
        # Claimed as by a worker, so that a reader and a worker never compute the same report.
        row = leases.claim(Report, pk=report.pk)
        if row is not None:
            reports.work_on_report(row)


def build_leaderboard(stored: StoredReport, measure: str, sort: str) -> dict[str, Any]:
    """Return the leaderboard: systems with the interval of their mean and the comparison with the best.

    `sort`: a column, with a leading - to reverse the order.
    """
    result = stored.result
    measure = measure if measure in RANKING else MEASURE
    rows = _rows(stored, measure)
    others = [key for key in (*SHOWN, *ASPECTS) if key in result["measures"] and key != measure]
    column = sort.removeprefix("-")
    keys = (measure, *others, *LOW_FIRST)
    column = column if column in keys else measure
    # Systems without a value come last in both directions.
    rows_with_value = [row for row in rows if row["sorted"].get(column) is not None]
    is_reversed = sort.startswith("-") and column == sort.removeprefix("-")
    rows_with_value.sort(key=lambda row: row["sorted"][column], reverse=(column in LOW_FIRST) == is_reversed)
    rows = rows_with_value + [row for row in rows if row["sorted"].get(column) is None]
    label = label_in(result, measure)
    intervals = (_("95% from"), _("95% to")), (_("difference, 95% from"), _("difference, 95% to"))
    tests = (_("difference from the best"), *intervals[1], "p", _("p (Holm)"))
    measures = (*(label_in(result, key) for key in others), label_in(result, "unjudged"))
    header = (_("system"), label, *intervals[0], *tests, *measures, _("seconds per query"), _("cost (USD)"))
    names = ("value", "low", "high", "p", "p_holm")
    lines = tuple(
        (row["name"], Figure(row["value"], letters=row["letters"]), row["low"], row["high"],
         *((row["best"] or {}).get(name) for name in names), *(row["values"][key] for key in others),
         row["values"]["unjudged"], row["cost"]["seconds"], row["cost"]["usd"])
        for row in rows
    )  # fmt: skip
    title = _("Leaderboard by %(measure)s") % {"measure": label}
    return {
        "measure": measure,
        "weights": stored.weights,
        "weights_words": describe_weights(result),
        "outdated_words": describe_outdated(result["systems"]),
        "query": urlencode({"measure": measure, **({"weights": stored.weights} if stored.weights else {})}),
        "label": label_in(result, measure),
        "measures": [(key, label_in(result, key)) for key in RANKING],
        "others": [(key, label_in(result, key)) for key in others],
        "column": column,
        "is_turned": is_reversed,
        "direction": "ascending" if (column in LOW_FIRST) != is_reversed else "descending",
        "rows": rows,
        "k": stored.k,
        "queries": len(result["queries"]),
        "judged": result["judged"]["after"],
        "pairs": len(rows) * (len(rows) - 1) // 2,
        "table": DownloadTable("leaderboard", title, header, lines, best=frozenset({1})),
    }


def _rows(stored: StoredReport, measure: str) -> list[dict[str, Any]]:
    """Return the systems in the order of the measure, the best first."""
    result, rows = stored.result, []
    # Of systems with the same mean the first by name is the best.
    order = sorted(
        (int(system["values"][measure]["rank_after"]), stored.name(system["run"]), position)
        for position, system in enumerate(result["systems"])
    )
    best = order[0][-1]
    for _rank, name, position in order:
        system, cost = result["systems"][position], result["costs"][position]
        values = {key: value["after"] for key, value in system["values"].items()}
        low, high = result["intervals"][measure][position]
        comparison = None
        if position != best:
            best_run = result["systems"][best]["run"]
            comparison = {"run": best_run, **difference_of(result, measure, position, best)}
        rows.append(
            {
                "run": system["run"],
                "name": name,
                "note": stored.notes.get(system["run"], ""),
                "missing": system["missing"],
                "outdated": system.get("outdated"),  # Reports stored earlier have no such number.
                "place": system["values"][measure]["rank_after"],
                "letters": system["values"][measure]["letters_after"],
                "value": values[measure],
                "low": low,
                "high": high,
                "best": comparison,
                "values": values,
                "cost": cost,
                "sorted": {**values, **cost, "name": name.lower()},
            }
        )
    return rows


def difference_of(result: Mapping[str, Any], measure: str, first: int, second: int) -> dict[str, Any]:
    """Compare the means of two systems, by their positions, with test and interval corrected by Holm."""
    # Pairs are stored once, the earlier system first; for the reverse order the interval changes its sign.
    earlier, later = sorted((first, second))
    systems = result["systems"]
    # Pairs are in the order of itertools.combinations.
    pair = earlier * len(systems) - earlier * (earlier + 1) // 2 + later - earlier - 1
    # 0.0 - x instead of -x, because -0.0 would be printed with its sign.
    p, corrected, low, high = result["pairs"][measure][pair]
    low, high = (low, high) if first < second else (0.0 - high, 0.0 - low)
    value = systems[first]["values"][measure]["after"] - systems[second]["values"][measure]["after"]
    is_significant = corrected < LEVEL
    return {"value": value, "low": low, "high": high, "p": p, "p_holm": corrected, "is_significant": is_significant}
