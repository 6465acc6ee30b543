"""The agreement section of the Quality page: its filters, heat map, summary, lists and CSV."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from typing import Any
from urllib.parse import urlencode

import numpy as np
from django.core.paginator import Page, Paginator
from django.http import HttpResponse, QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext
from numpy.typing import NDArray

from annotation.access.hidden_names import PEOPLE
from annotation.agreement.grade_matrix import BY_NAME_ONLY, JUDGES, KnownAssessor, Population, choose_assessors
from annotation.agreement.measures import Pairwise, Statistic
from annotation.agreement.report import AgreementReport, describe_copies
from charts import Chart
from charts import draw_heatmap as heat_chart
from charts.cells import csv_line
from corpus.models import Assessor, Collection

MEASURES = {
    "kappa": gettext_noop("Cohen's kappa"),
    "kappa_linear": gettext_noop("Kappa, linear weights"),
    "kappa_quadratic": gettext_noop("Kappa, quadratic weights"),
    "percent": gettext_noop("Percent agreement"),
}
POPULATIONS: dict[Population, str] = {
    "all": gettext_noop("all pairs"),
    "escalated": gettext_noop("escalated pairs only"),
    "audited": gettext_noop("audited pairs only"),
}
GROUPS = (
    (gettext_noop("People"), PEOPLE),
    (gettext_noop("Judges"), JUDGES),
    (gettext_noop("Policies and reference grades"), BY_NAME_ONLY),
)
STEPS = (0.0, 0.2, 0.4, 0.6, 0.8)  # The bounds of the heat map's colours.
ENOUGH = 20  # With fewer common pairs the agreement of a couple is uncertain.


@dataclass(frozen=True, slots=True)
class AgreementFilters:
    """Filters in the address of the page. `binarize`: the lowest grade that counts as relevant."""

    chosen: tuple[KnownAssessor, ...]
    population: Population
    measure: str
    binarize: int | None
    everybody: bool = False  # No assessor is selected: all judges, people and imports.

    def names(self) -> set[str]:
        """Return the names of the selected assessors."""
        return {assessor.name for assessor in self.chosen}

    def query(self) -> str:
        """Return the filters as a query string."""
        names = [] if self.everybody else [("a", assessor.name) for assessor in self.chosen]
        grades = "relevant" if self.binarize else "given"
        return urlencode([*names, ("population", self.population), ("measure", self.measure), ("grades", grades)])


def read_filters(parameters: QueryDict, collection: Collection, assessors: Sequence[KnownAssessor]) -> AgreementFilters:
    """Read the filters from a query string; unknown values become the defaults: all assessors, all pairs, kappa.

    Votes of judges and grades on a longer scale are compared as relevant or not, unless the filters say otherwise.
    """
    by_name = {assessor.name: assessor for assessor in assessors}
    named = [by_name[name] for name in parameters.getlist("a") if name in by_name]
    selected = (
        tuple(assessor for assessor in assessors if assessor in named) if named else tuple(choose_assessors(assessors))
    )
    grades = parameters.get("grades", "")
    mixed = collection.grades > 1 and any(assessor.kind == Assessor.Kind.JUDGE for assessor in selected)
    binary = grades == "relevant" or (grades != "given" and mixed)
    measure = parameters.get("measure", "")
    return AgreementFilters(
        chosen=selected,
        population=next(
            (population for population in POPULATIONS if population == parameters.get("population", "")), "all"
        ),
        measure=measure if measure in MEASURES else "kappa",
        binarize=collection.relevant_from if binary and collection.grades > 1 else None,
        everybody=not named,
    )


def build_matrix(report: AgreementReport, filters: AgreementFilters) -> list[dict[str, Any]]:
    """Return the cells of the heat map by row, in the order of the assessors; cells on the diagonal are empty."""
    couples = {(pair.a, pair.b): pair for pair in report.measures.pairwise}
    cells: dict[int, list[dict[str, Any]]] = {row: [] for row in range(len(report.assessors))}
    for row, column in product(cells, repeat=2):
        pair = couples.get((min(row, column), max(row, column)))
        cells[row].append(_build_cell(report, filters, pair, row, column) if pair else {})
    return [{"assessor": report.assessors[row], "cells": row_cells} for row, row_cells in cells.items()]


def _build_cell(
    report: AgreementReport, filters: AgreementFilters, pair: Pairwise, row: int, column: int
) -> dict[str, Any]:
    """Return a couple's cell of the heat map: its measure, a description, and the query string of its pairs."""
    statistic: Statistic = getattr(pair, filters.measure)
    a, b = report.name(row), report.name(column)
    names = _("%(a)s and %(b)s") % {"a": a, "b": b}
    is_copy = report.is_copy(row, column)
    message = _("%(names)s: %(words)s (%(n)s pairs)")
    if is_copy:
        message = _("%(names)s: %(words)s (%(n)s pairs), same model")
    about = message % {"names": names, "words": format_statistic(statistic), "n": f"{pair.n:,}"}
    cell = ":".join(["disagree", *([str(filters.binarize)] if filters.binarize else [])])
    cell += "" if filters.population == "all" else f":{filters.population}"
    return {
        "pair": pair,
        "shown": statistic,
        "percent": pair.percent,
        "heat": heat_class(statistic.value),
        "pairs": urlencode({"a": a, "b": b, "cell": cell}),
        "names": names,
        "about": about,
        "copy": is_copy,
    }


def find_weakest(report: AgreementReport, filters: AgreementFilters) -> dict[str, Any] | None:
    """Return the cell of the two assessors who agree least; None where no couple has enough common pairs."""
    couples = report.measures.pairwise
    values = np.where(couples.n < ENOUGH, np.nan, couples.values[:, list(MEASURES).index(filters.measure), 0])
    if not np.isfinite(values).any():
        return None
    weakest = int(np.nanargmin(values))
    return _build_cell(report, filters, couples[weakest], *couples.places[weakest].tolist())


def heat_class(value: float | None) -> str:
    """Return the CSS class of a value's colour."""
    return "heat-none" if value is None else f"heat-{sum(value >= step for step in STEPS)}"


def draw_heat_map(report: AgreementReport, filters: AgreementFilters) -> Chart:
    """Draw the heat map for saving."""
    values = {(pair.a, pair.b): getattr(pair, filters.measure).value for pair in report.measures.pairwise}
    positions = range(len(report.assessors))
    return heat_chart(
        "matrix",
        _("%(measure)s, pairwise") % {"measure": _(MEASURES[filters.measure])},
        {
            report.name(row): [values.get((min(row, column), max(row, column))) for column in positions]
            for row in positions
        },
        [assessor.name for assessor in report.assessors],
        summary=" ".join(summarise_agreement(report, filters)),
        source=f"{report.collection}: {POPULATIONS[report.population]}",
    )


def format_statistic(statistic: Statistic) -> str:
    """Describe a statistic: 0.42 (95% interval 0.31 to 0.53), or why it is undefined."""
    if statistic.value is None:
        return _("undefined: %(reason)s") % {"reason": _(str(statistic.reason))}
    value = f"{statistic.value:.2f}"
    if statistic.low is None:
        return value
    bounds = {"low": f"{statistic.low:.2f}", "high": f"{statistic.high:.2f}"}
    return _("%(value)s (95%% interval %(low)s to %(high)s)") % {"value": value, **bounds}


def summarise_agreement(report: AgreementReport, filters: AgreementFilters) -> list[str]:
    """Summarise the page in a few sentences."""
    measures, population = report.measures, _(POPULATIONS[report.population])
    if not measures.items:
        return [_("None of these assessors has graded a pair yet (%(population)s).") % {"population": population}]
    count, alpha = len(report.assessors), measures.alpha_nominal
    people = ngettext("%(count)s assessor", "%(count)s assessors", count) % {"count": count}
    figures = {"items": f"{measures.items:,}", "population": population, "prevalence": f"{report.prevalence or 0:.0%}"}
    graded = _("%(people)s graded %(items)s pairs (%(population)s); %(prevalence)s of their grades are relevant.")
    by_alpha = _("Krippendorff's alpha (nominal) is %(words)s, from %(n)s pairs with two or more grades.")
    lines = [
        graded % {"people": people, **figures},
        by_alpha % {"n": f"{alpha.n:,}", "words": format_statistic(alpha)},
    ]
    values = measures.pairwise.values[:, list(MEASURES).index(filters.measure), 0]
    if np.isfinite(values).sum() > 1:
        extremes = [int(np.nanargmax(values)), int(np.nanargmin(values))]
        most, least = (
            _("%(name)s and %(name2)s") % {"name": report.name(a), "name2": report.name(b)}
            for a, b in measures.pairwise.places[extremes].tolist()
        )
        between = _("%(label)s is highest between %(most)s (%(high)s) and lowest between %(least)s (%(low)s).")
        shown = {"high": f"{values[extremes[0]]:.2f}", "low": f"{values[extremes[1]]:.2f}"}
        lines.append(between % {"label": _(MEASURES[filters.measure]), "most": most, "least": least, **shown})
    return [*lines, *describe_copies(report)]


_FIGURES = tuple(f"{name}{part}" for name in MEASURES for part in ("", "_low", "_high"))
CSV_HEADER = ("a", "b", "n", *_FIGURES, "undefined", "copies")


def send_csv(report: AgreementReport) -> HttpResponse:
    """Return the couples of assessors with all measures as a CSV file."""
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{report.collection}-agreement.csv"'
    response.writelines(map(csv_line, chain([CSV_HEADER], csv_rows(report))))
    return response


def csv_rows(report: AgreementReport) -> Iterator[tuple[object, ...]]:
    """Yield the couples of assessors with all measures; undefined values are empty, the reason has its own column."""
    for pair in report.measures.pairwise:
        family: list[Statistic] = [getattr(pair, name) for name in MEASURES]
        figures = [value for statistic in family for value in (statistic.value, statistic.low, statistic.high)]
        values = ["" if value is None else round(value, 6) for value in figures]
        copy = "yes" if report.is_copy(pair.a, pair.b) else ""
        yield (report.name(pair.a), report.name(pair.b), pair.n, *values, pair.kappa.reason or "", copy)


ROWS = 50
COUPLE_COLUMNS = {"n": gettext_noop("Pairs"), **MEASURES}
ASSESSOR_COLUMNS = {
    "name": gettext_noop("Assessor"),
    "graded": gettext_noop("Graded"),
    "relevant": gettext_noop("Relevant"),
    "kappa": gettext_noop("Kappa"),
    "percent": gettext_noop("Percent"),
    "estimated": gettext_noop("Estimated accuracy"),
}


def list_couples(report: AgreementReport, filters: AgreementFilters, parameters: QueryDict) -> dict[str, Any]:
    """Return a page of the couples of assessors; the parameter `sort` names a column, a minus reverses the order."""
    couples = report.measures.pairwise
    sort, is_descending, headings = _sortable_list(filters, parameters, "sort", COUPLE_COLUMNS, "-n")
    keys = couples.n.astype(float) if sort == "n" else couples.values[:, list(MEASURES).index(sort), 0]
    page = _paginate_sorted(keys, is_descending, parameters.get("page"))
    rows = [
        (couples[index], _build_cell(report, filters, couples[index], *couples.places[index].tolist()))
        for index in page
    ]
    return {**headings, "rows": rows, "page": page}


def list_assessors(
    report: AgreementReport,
    filters: AgreementFilters,
    parameters: QueryDict,
    estimated: Mapping[str, float],
    cluster: Mapping[int, int],
) -> dict[str, Any]:
    """Return a page of the assessors with the majority of the others; the parameter `by` names a column."""
    by, is_descending, headings = _sortable_list(filters, parameters, "by", ASSESSOR_COLUMNS, "kappa")
    majority = report.measures.majority
    keys = {
        "name": np.arange(len(report.assessors), dtype=float),
        "graded": np.array([assessor.n for assessor in report.assessors], dtype=float),
        "relevant": np.array([assessor.prevalence for assessor in report.assessors], dtype=float),
        "kappa": majority.values[:, 0, 0],
        "percent": majority.values[:, 3, 0],
        "estimated": np.array([estimated.get(assessor.name) for assessor in report.assessors], dtype=float),
    }
    page = _paginate_sorted(keys[by], is_descending, parameters.get("assessors"))
    rows = [
        (report.assessors[index], majority[index], estimated.get(report.name(index)), cluster.get(index))
        for index in page
    ]
    return {**headings, "rows": rows, "page": page}


def _paginate_sorted(keys: NDArray[np.float64], is_descending: bool, number: str | None) -> Page[int]:
    """Return a page of the indices of keys in the order of the keys."""
    # Undefined values are NaN, which numpy sorts to the end in both directions.
    order: list[int] = np.argsort(-keys if is_descending else keys, kind="stable").tolist()
    return Paginator(order, ROWS).get_page(number)


def _sortable_list(
    filters: AgreementFilters, parameters: QueryDict, name: str, labels: Mapping[str, str], default: str
) -> tuple[str, bool, dict[str, Any]]:
    """Return the column that a list is sorted by, whether descending, and the list's headings and query string."""
    order = parameters.get(name, default)
    order = order if order.removeprefix("-") in labels else default
    sort, is_descending = order.removeprefix("-"), order.startswith("-")
    # The page has two lists: sorting one keeps the order of the other.
    orders = {key: parameters[key] for key in ("sort", "by") if key in parameters}
    columns = []
    for key, label in labels.items():
        next_descending = not is_descending if key == sort else key != "name"
        query = f"{filters.query()}&{urlencode(orders | {name: f'-{key}' if next_descending else key})}"
        direction = ("descending" if is_descending else "ascending") if key == sort else ""
        columns.append({"label": _(label), "query": query, "direction": direction})
    return sort, is_descending, {"columns": columns, "query": f"{filters.query()}&{urlencode(orders | {name: order})}"}
