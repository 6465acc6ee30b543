"""What the report's page and the leaderboard show, from a stored result."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchmark.report import tabling, verdict
from benchmark.report.downloads import DownloadTable
from benchmark.report.naming import explain_measure, label_in
from benchmark.systems import figures
from benchmark.systems.chosen import StoredReport, complete_figures
from charts import Chart

RANKING = ("hit", "ndcg", "ndcg_exp", "ndcg_bridge", "recall")
"""Measures by which systems have an order before and after."""


@dataclass(frozen=True)
class ReportRow:
    """A system's line."""

    run: int
    name: str
    note: str
    missing: int
    value: dict[str, Any]
    values: dict[str, dict[str, Any]]


@dataclass(frozen=True)
class ShownReport:
    """The report by one measure."""

    measure: str
    label: str
    explanation: str
    measures: list[tuple[str, str]]
    """Those that have an order, with their names."""
    rows: list[ReportRow]
    mean: Mapping[str, Any]
    """Over the systems, by measure."""
    order: dict[str, Any]
    bump: Chart
    growth: list[Chart]
    verdict: list[str]
    tables: list[DownloadTable]
    k: int
    missing: int
    """Systems that have nothing for some query."""
    common: int
    """Queries that every system answered and both versions judge; the figures are of these where there are any."""
    queries: int
    recall: str
    """Why Recall falls; empty where nothing relevant was found."""

    @property
    def value(self) -> Mapping[str, Any]:
        """The mean of the measure that is shown."""
        found: Mapping[str, Any] = self.mean[self.measure]
        return found

    @property
    def is_of_common(self) -> bool:
        """Other figures stand for all queries."""
        return 0 < self.common < self.queries

    @property
    def charts(self) -> list[Chart]:
        """All of the page."""
        return [self.bump, *self.growth]


def report_rows(stored: StoredReport, measure: str, result: Mapping[str, Any] | None = None) -> list[ReportRow]:
    """Systems with their values, the best after filling first. `result`: the headline's in place of the whole."""
    found = []
    for one in (result or stored.result)["systems"]:
        values = {key: complete_figures(value) for key, value in one["values"].items()}
        run, note = one["run"], stored.notes.get(one["run"], "")
        found.append(ReportRow(run, stored.name(run), note, one["missing"], values[measure], values))
    return sorted(found, key=lambda row: (-row.value["after"], row.name))


def measure_of(stored: StoredReport, asked: str, otherwise: str = figures.MEASURE) -> str:
    """The measure that was asked for, if the report has it."""
    return asked if asked in stored.result["measures"] else otherwise


def show_report(stored: StoredReport, asked: str) -> ShownReport:
    """The report by the measure that was asked for, nDCG@k unless it has an order."""
    measure = asked if asked in RANKING else figures.MEASURE
    result, first = stored.result, tabling.headline_result(stored.result)
    lines = report_rows(stored, measure, first)
    curves = [figures.holes_chart(stored), figures.growth_chart(stored), figures.marginal_chart(stored)]
    return ShownReport(
        measure=measure,
        label=label_in(result, measure),
        explanation=explain_measure(measure),
        measures=[(key, label_in(result, key)) for key in RANKING],
        rows=lines,
        mean=first["means"],
        order=first["order"][measure],
        bump=figures.bump_chart(stored, measure),
        growth=[chart for chart in curves if chart is not None],
        verdict=verdict.explain_verdict(result["verdict"]),
        tables=[
            *tabling.changes_tables(result, measure),
            tabling.measures_table(result),
            tabling.growth_table(result),
            tabling.marginal_table(result),
            *filter(None, [tabling.aspects_table(result)]),
        ],
        k=stored.k,
        missing=sum(1 for row in lines if row.missing),
        common=result["common"]["queries"],
        queries=len(result["queries"]),
        recall=verdict.recall_shift(result),
    )


@dataclass(frozen=True)
class Board:
    """The leaderboard by one measure. `of`: before, or after filling."""

    measure: str
    of: str
    columns: list[tuple[str, str]]
    rows: list[ReportRow]
    table: DownloadTable
    k: int
    explanation: str
    note: str
    """Why Recall falls, where the board is by Recall."""


LOW_IS_BETTER = ("unjudged",)


def build_leaderboard(stored: StoredReport, asked: str, of: str) -> Board:
    """Every measure of every system, the best by the one that was asked for first."""
    measure, of = measure_of(stored, asked), "before" if of == "before" else "after"
    lines = report_rows(stored, measure)
    known = [row for row in lines if row.value[of] is not None]
    sign = 1 if measure in LOW_IS_BETTER else -1
    known.sort(key=lambda row: (sign * row.value[of], row.name))
    return Board(
        measure=measure,
        of=of,
        columns=[(key, label_in(stored.result, key)) for key in stored.result["measures"]],
        rows=known + [row for row in lines if row.value[of] is None],
        table=tabling.leaderboard_table(stored.result, measure),
        k=stored.k,
        explanation=explain_measure(measure),
        note=verdict.recall_shift(stored.result) if measure == "recall" else "",
    )
