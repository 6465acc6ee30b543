"""The leaderboard: every ready run on the newest qrels, computed once for each set of both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import F
from django.utils.translation import gettext as _

from benchmark.models import Report, Run
from benchmark.qrels import versions
from benchmark.report import reports
from benchmark.report.measures import RANKING
from benchmark.report.naming import ASPECTS, label_in
from benchmark.significance.paired import LEVEL
from benchmark.systems import chosen
from benchmark.systems.chosen import StoredReport
from benchmark.systems.figures import MEASURE
from charts.downloads import DownloadTable, Figure
from corpus.models import Collection, Query
from jobs import leases
from jobs.models import JobState

AT_ONCE = 5_000  # Runs times queries: up to here the reader waits for it, about a second; a worker makes larger ones.
SHOWN = ("ndcg", "recall", "hit")  # Measures beside the one that is chosen.
LOW_FIRST = ("name", "unjudged", "seconds", "usd")


@dataclass(frozen=True)
class LeaderboardState:
    """State of the leaderboard. `current`: today's report; `stored`: that or an earlier one, which can be shown."""

    runs: list[Run]
    current: Report | None
    stored: StoredReport | None

    @property
    def ready(self) -> list[Run]:
        """The runs that are measured."""
        return [run for run in self.runs if run.state == JobState.READY]

    @property
    def in_progress(self) -> list[Run]:
        """The runs that are being made."""
        return [run for run in self.runs if not run.is_over]

    @property
    def is_missing(self) -> bool:
        """Return whether a report could be computed, and nobody has asked for it yet."""
        return bool(self.ready) and self.current is None

    @property
    def is_moving(self) -> bool:
        """Return whether runs or the report are being computed: the page looks again."""
        return bool(self.in_progress) or (self.current is not None and not self.current.is_over)


def load_leaderboard(collection: Collection) -> LeaderboardState:
    """Read what there is; nothing is computed."""
    runs, version = chosen.runs_of(collection), versions.latest_version(collection)
    ready = [run for run in runs if run.state == JobState.READY]
    current = None
    if ready and version is not None:
        current = reports.find_report(collection, version, version, ready, chosen.common_depth(ready))
    shown = current
    if current is None or current.state != JobState.READY:
        rows = Report.objects.filter(collection=collection, after=F("before"), state=JobState.READY)
        shown = rows.select_related("before", "after").order_by("-pk").first()
    return LeaderboardState(runs, current, chosen.stored_report(shown, runs))


def make_small(report: Report) -> None:
    """Make a waiting report in this process, if it is small enough for a reader to wait."""
    queries = report.after.counts.get("queries") or Query.objects.filter(collection=report.collection_id).count()
    if not report.is_over and len(report.options["runs"]) * queries <= AT_ONCE:
        # Claimed as a worker does, so that a reader and a worker never compute the same report.
        row = leases.claim(Report, pk=report.pk)
        if row is not None:
            reports.work_on_report(row)


def build_leaderboard(stored: StoredReport, measure: str, sort: str) -> dict[str, Any]:
    """Return the leaderboard: systems with the interval of their mean and the comparison with the best.

    `sort`: a column; with a - in front the other way round.
    """
    result = stored.result
    measure = measure if measure in RANKING else MEASURE
    rows = _rows(stored, measure)
    others = [key for key in (*SHOWN, *ASPECTS) if key in result["measures"] and key != measure]
    column = sort.removeprefix("-")
    keys = (measure, *others, *LOW_FIRST)
    column = column if column in keys else measure
    # Systems without a value stand last, whichever way the others are sorted.
    known = [row for row in rows if row["sorted"].get(column) is not None]
    is_turned = sort.startswith("-") and column == sort.removeprefix("-")
    known.sort(key=lambda row: row["sorted"][column], reverse=(column in LOW_FIRST) == is_turned)
    rows = known + [row for row in rows if row["sorted"].get(column) is None]
    return {
        "measure": measure,
        "label": label_in(result, measure),
        "measures": [(key, label_in(result, key)) for key in RANKING],
        "others": [(key, label_in(result, key)) for key in others],
        "column": column,
        "is_turned": is_turned,
        "direction": "ascending" if (column in LOW_FIRST) != is_turned else "descending",
        "rows": rows,
        "k": stored.k,
        "queries": len(result["queries"]),
        "judged": result["judged"]["after"],
        "pairs": len(rows) * (len(rows) - 1) // 2,
        "table": _leaderboard_table(result, measure, others, rows),
    }


def _rows(stored: StoredReport, measure: str) -> list[dict[str, Any]]:
    """The systems in the order of the measure, the best first."""
    result, found = stored.result, []
    # The first place goes to the best mean; of equal means to the first name.
    best = min(range(len(result["systems"])), key=lambda at: _place(stored, measure, at))
    for at in sorted(range(len(result["systems"])), key=lambda at: _place(stored, measure, at)):
        one, cost = result["systems"][at], result["costs"][at]
        values = {key: value["after"] for key, value in one["values"].items()}
        low, high = result["intervals"][measure][at]
        found.append(
            {
                "run": one["run"],
                "name": stored.name(one["run"]),
                "note": stored.notes.get(one["run"], ""),
                "missing": one["missing"],
                "place": one["values"][measure]["rank_after"],
                "letters": one["values"][measure]["letters_after"],
                "value": values[measure],
                "low": low,
                "high": high,
                "best": None
                if at == best
                else {"run": result["systems"][best]["run"], **difference_of(result, measure, at, best)},
                "values": values,
                "cost": cost,
                "sorted": {**values, **cost, "name": stored.name(one["run"]).lower()},
            }
        )
    return found


def _place(stored: StoredReport, measure: str, at: int) -> tuple[int, str]:
    one = stored.result["systems"][at]
    return int(one["values"][measure]["rank_after"]), stored.name(one["run"])


def difference_of(result: Mapping[str, Any], measure: str, one: int, other: int) -> dict[str, Any]:
    """The mean of one system less that of another, by their places, with its test and interval, both by Holm."""
    # Pairs are stored once, the earlier system first; asked the other way round, the interval changes its sign.
    first, second = sorted((one, other))
    systems = result["systems"]
    # Rows stand in the order of itertools.combinations.
    row = first * len(systems) - first * (first + 1) // 2 + second - first - 1
    # 0.0 - x instead of -x, because -0.0 would print with its sign.
    p, corrected, low, high = result["pairs"][measure][row]
    low, high = (low, high) if one < other else (0.0 - high, 0.0 - low)
    value = systems[one]["values"][measure]["after"] - systems[other]["values"][measure]["after"]
    is_significant = corrected < LEVEL
    return {"value": value, "low": low, "high": high, "p": p, "p_holm": corrected, "is_significant": is_significant}


def _leaderboard_table(
    result: Mapping[str, Any], measure: str, others: Sequence[str], rows: Sequence[Mapping[str, Any]]
) -> DownloadTable:
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
    return DownloadTable("leaderboard", title, header, lines, best=frozenset({1}))
