"""The tables of a report, from its stored result. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from benchmark.measures.arrays import BY_VERSION
from benchmark.report.naming import ASPECTS, label_in
from charts.downloads import Cell, DownloadTable, Figure

Result = Mapping[str, Any]
BOARD = ("hole", "judged", "hit", "ndcg", "recall")
MEASURED = ("hole", *BY_VERSION)
CHANGE_FIELDS = ("before", "after", "change", "low", "high", "p", "p_holm", "rank_before", "rank_after")


def headline_result(result: Result) -> Result:
    """Return the result over the queries common to all systems and versions; over all queries where none or all are."""
    common = result.get("common") or {}
    if "systems" not in common:
        return result
    systems = [
        {**system, "values": {**system["values"], **values}}
        for system, values in zip(result["systems"], common["systems"], strict=True)
    ]
    return {**result, "systems": systems, "means": {**result["means"], **common["means"]}, "order": common["order"]}


def leaderboard_table(result: Result, key: str = "ndcg") -> DownloadTable:
    """Return systems by a measure after filling, the best first, with changes and letters of significance."""
    columns = [column for column in (*BOARD, *ASPECTS) if column in result["measures"]]
    # The measure that orders the board is always among its few columns.
    columns += [key] if key not in columns else []
    rows = [
        (system["name"], *(_change_figure(system["values"][column]) for column in columns))
        for system in _best_first(result, key)
    ]
    return _measure_table(
        result, "leaderboard", _("Leaderboard by %(measure)s") % {"measure": label_in(result, key)}, columns, rows
    )


def measures_table(result: Result) -> DownloadTable:
    """Return systems by name with every measure by a version of the qrels."""
    rows = [
        (system["name"], *(_change_figure(system["values"][column], with_letters=False) for column in MEASURED))
        for system in sorted(result["systems"], key=lambda system: str(system["name"]))
    ]
    mean = tuple(Figure(result["means"][key]["after"], result["means"][key]["change"]) for key in MEASURED)
    title = _("All measures by system, after judging, with changes")
    return _measure_table(result, "measures", title, MEASURED, [*rows, (_("mean"), *mean)])


def change_names() -> tuple[str, ...]:
    """Return the headers of CHANGE_FIELDS."""
    when = (_("before"), _("after"), _("change"), _("95% from"), _("95% to"))
    return (*when, "p", _("p (Holm)"), _("rank before"), _("rank after"))


def report_tables(result: Result, key: str) -> list[DownloadTable]:
    """Return all tables of a report except the leaderboard, which has its own page."""
    tables = [*changes_tables(result, key), measures_table(result), growth_table(result), marginal_table(result)]
    aspects = aspects_table(result)
    return [*tables, aspects] if aspects else tables


def changes_tables(result: Result, key: str) -> list[DownloadTable]:
    """Return a measure's changes: over the common queries, then over all."""

    def table(name: str, title: str, part: Result) -> DownloadTable:
        rows = tuple(
            (system["name"], *map(system["values"][key].get, CHANGE_FIELDS)) for system in _best_first(part, key)
        )
        return DownloadTable(name, title % {"measure": label_in(result, key)}, (_("system"), *change_names()), rows)

    headline = headline_result(result)
    if headline is result:
        return [table(f"changes-{key}", _("%(measure)s before and after"), result)]
    return [
        table(f"changes-{key}", _("%(measure)s before and after, over the common queries"), headline),
        table(f"changes-{key}-all", _("%(measure)s before and after, over all queries"), result),
    ]


def aspects_table(result: Result) -> DownloadTable | None:
    """Return both forms of the measures of aspects, with nDCG and Recall; None without aspects."""
    if not result.get("aspects"):
        return None
    columns = (*ASPECTS, "ndcg", "recall")
    rows = [
        (system["name"], *(Figure(system["values"][column]["after"]) for column in columns))
        for system in _best_first(result, ASPECTS[0])
    ]
    return _measure_table(result, "aspects", _("Aspects by system"), columns, rows)


def growth_table(result: Result) -> DownloadTable:
    """Return holes and growth rates as systems are added, with the bands over the orders."""
    band = (_("10th percentile of orders"), _("90th percentile of orders"))
    header = (_("systems"), _("holes"), *band, _("growth rate"), *band)
    fields = ("systems", "holes", "holes_low", "holes_high", "rate", "low", "high")
    rows = tuple(tuple(point[name] for name in fields) for point in result["growth"])
    return DownloadTable("growth", _("Holes found as systems are added"), header, rows)


def marginal_table(result: Result) -> DownloadTable:
    """Return marginal contributions as systems are added, by measure."""
    header = [_("systems")]
    for key in result["marginal"]:
        header += [label_in(result, key), _("10th percentile of orders"), _("90th percentile of orders")]
    columns = list(result["marginal"].values())
    rows = tuple(
        (points[0]["systems"], *(point[name] for point in points for name in ("value", "low", "high")))
        for points in zip(*columns, strict=True)
    )
    return DownloadTable("marginal", _("Marginal contribution of each system"), tuple(header), rows)


def _best_first(result: Result, key: str) -> list[Mapping[str, Any]]:
    return sorted(result["systems"], key=lambda system: (-system["values"][key]["after"], str(system["name"])))


def _change_figure(value: Mapping[str, Any], *, with_letters: bool = True) -> Figure:
    return Figure(value["after"], value["change"], value.get("letters_after", "") if with_letters else "")


def _measure_table(
    result: Result, key: str, title: str, columns: Sequence[str], rows: Sequence[tuple[Cell, ...]]
) -> DownloadTable:
    header = (_("system"), *(label_in(result, column) for column in columns))
    low_is_better = {"hole", "unjudged"}
    best = frozenset(position for position, column in enumerate(columns, 1) if column not in low_is_better)
    return DownloadTable(key, title, header, tuple(rows), best=best)
