"""The tables of a report, from its stored result. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from benchmark.report.measures import BY_VERSION
from benchmark.report.naming import ASPECTS, label_in
from charts.downloads import Cell, DownloadTable, Figure

Result = Mapping[str, Any]
BOARD = ("hole", "judged", "hit", "ndcg", "recall")
MEASURED = ("hole", *BY_VERSION)
CHANGE_FIELDS = ("before", "after", "change", "low", "high", "p", "p_holm", "rank_before", "rank_after")


def headline_result(result: Result) -> Result:
    """The result over the queries that are common to all systems and versions; over all where none is, or every one."""
    common = result.get("common") or {}
    if "systems" not in common:
        return result
    systems = [
        {**one, "values": {**one["values"], **values}}
        for one, values in zip(result["systems"], common["systems"], strict=True)
    ]
    return {**result, "systems": systems, "means": {**result["means"], **common["means"]}, "order": common["order"]}


def leaderboard_table(result: Result, key: str = "ndcg") -> DownloadTable:
    """Systems by a measure after filling, the best first: each with its change and the letters of significance."""
    columns = [one for one in (*BOARD, *ASPECTS) if one in result["measures"]]
    # The board has few columns; the measure that orders it always stands among them.
    columns += [key] if key not in columns else []
    rows = [
        (one["name"], *(_change_figure(one["values"][column]) for column in columns))
        for one in _best_first(result, key)
    ]
    return _measure_table(
        result, "leaderboard", _("Leaderboard by %(measure)s") % {"measure": label_in(result, key)}, columns, rows
    )


def measures_table(result: Result) -> DownloadTable:
    """Systems by name with every measure that versions of the qrels have."""
    rows = [
        (one["name"], *(_change_figure(one["values"][column], with_letters=False) for column in MEASURED))
        for one in sorted(result["systems"], key=lambda one: str(one["name"]))
    ]
    mean = tuple(Figure(result["means"][key]["after"], result["means"][key]["change"]) for key in MEASURED)
    title = _("All measures by system, after judging, with changes")
    return _measure_table(result, "measures", title, MEASURED, [*rows, (_("mean"), *mean)])


def change_names() -> tuple[str, ...]:
    """Return the headers of CHANGE_FIELDS."""
    when = (_("before"), _("after"), _("change"), _("95% from"), _("95% to"))
    return (*when, "p", _("p (Holm)"), _("rank before"), _("rank after"))


def report_tables(result: Result, key: str) -> list[DownloadTable]:
    """Return all tables of a report but the leaderboard, which has a page of its own."""
    found = [*changes_tables(result, key), measures_table(result), growth_table(result), marginal_table(result)]
    aspects = aspects_table(result)
    return [*found, aspects] if aspects else found


def changes_tables(result: Result, key: str) -> list[DownloadTable]:
    """Return a measure's changes: over the headline's queries, then over all."""

    def table(name: str, title: str, found: Result) -> DownloadTable:
        rows = tuple((one["name"], *map(one["values"][key].get, CHANGE_FIELDS)) for one in _best_first(found, key))
        return DownloadTable(name, title % {"measure": label_in(result, key)}, (_("system"), *change_names()), rows)

    first = headline_result(result)
    if first is result:
        return [table(f"changes-{key}", _("%(measure)s before and after"), result)]
    return [
        table(f"changes-{key}", _("%(measure)s before and after, over the common queries"), first),
        table(f"changes-{key}-all", _("%(measure)s before and after, over all queries"), result),
    ]


def aspects_table(result: Result) -> DownloadTable | None:
    """Measures of aspects, several and one a document, beside nDCG and Recall; None if none."""
    if not result.get("aspects"):
        return None
    columns = (*ASPECTS, "ndcg", "recall")
    rows = [
        (one["name"], *(Figure(one["values"][column]["after"]) for column in columns))
        for one in _best_first(result, ASPECTS[0])
    ]
    return _measure_table(result, "aspects", _("Aspects by system"), columns, rows)


def growth_table(result: Result) -> DownloadTable:
    """Holes and growth rate as systems are added, with the bands over the orders."""
    band = (_("10th percentile of orders"), _("90th percentile of orders"))
    header = (_("systems"), _("holes"), *band, _("growth rate"), *band)
    fields = ("systems", "holes", "holes_low", "holes_high", "rate", "low", "high")
    rows = tuple(tuple(point[name] for name in fields) for point in result["growth"])
    return DownloadTable("growth", _("Holes found as systems are added"), header, rows)


def marginal_table(result: Result) -> DownloadTable:
    """Marginal contribution as systems are added, by measure."""
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
    return sorted(result["systems"], key=lambda one: (-one["values"][key]["after"], str(one["name"])))


def _change_figure(value: Mapping[str, Any], *, with_letters: bool = True) -> Figure:
    return Figure(value["after"], value["change"], value.get("letters_after", "") if with_letters else "")


def _measure_table(
    result: Result, key: str, title: str, columns: Sequence[str], rows: Sequence[tuple[Cell, ...]]
) -> DownloadTable:
    header = (_("system"), *(label_in(result, column) for column in columns))
    low_is_better = {"hole", "unjudged"}
    best = frozenset(at for at, column in enumerate(columns, 1) if column not in low_is_better)
    return DownloadTable(key, title, header, tuple(rows), best=best)
