"""The agreement page: what the URL asks, the heat map's cells, and the summary."""

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

from annotation.agreement.grade_matrix import BY_NAME_ONLY, JUDGES, PEOPLE, KnownAssessors, Population, choose_assessors
from annotation.agreement.measures import Pairwise, Statistic
from annotation.agreement.report import AgreementReport, of_itself
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
STEPS = (0.0, 0.2, 0.4, 0.6, 0.8)  # Bounds of the heat map's colours: below 0, then by fifths.
ENOUGH = 20  # Pairs below which a couple's agreement may be anything.


@dataclass(frozen=True, slots=True)
class AgreementFilters:
    """Options of the agreement page, from its address. `binarize`: from which grade relevant."""

    chosen: tuple[KnownAssessors, ...]
    population: Population
    measure: str
    binarize: int | None
    everybody: bool = False  # Nobody was named: every judge, person and import.

    def names(self) -> set[str]:
        """Return the names that are ticked."""
        return {one.name for one in self.chosen}

    def query(self) -> str:
        """Return the filters as a query string."""
        names = [] if self.everybody else [("a", assessor.name) for assessor in self.chosen]
        grades = "relevant" if self.binarize else "given"
        return urlencode([*names, ("population", self.population), ("measure", self.measure), ("grades", grades)])


def read_filters(parameters: QueryDict, collection: Collection, known: Sequence[KnownAssessors]) -> AgreementFilters:
    """Read the filters from a query string; unknown ones fall back to every judge, person and import, all pairs, kappa.

    Where a judge's yes stands beside grades of a longer scale, they are compared as relevant or not unless asked.
    """
    by_name = {one.name: one for one in known}
    named = [by_name[name] for name in parameters.getlist("a") if name in by_name]
    chosen = tuple(one for one in known if one in named) if named else tuple(choose_assessors(known))
    grades = parameters.get("grades", "")
    mixed = collection.grades > 1 and any(one.kind == Assessor.Kind.JUDGE for one in chosen)
    binary = grades == "relevant" or (grades != "given" and mixed)
    measure = parameters.get("measure", "")
    return AgreementFilters(
        chosen=chosen,
        population=next((one for one in POPULATIONS if one == parameters.get("population", "")), "all"),
        measure=measure if measure in MEASURES else "kappa",
        binarize=collection.relevant_from if binary and collection.grades > 1 else None,
        everybody=not named,
    )


def build_matrix(report: AgreementReport, asked: AgreementFilters) -> list[dict[str, Any]]:
    """Lay out the pairwise values as a square table, in the order of the assessors; an empty cell on its diagonal."""
    found = {(pair.a, pair.b): pair for pair in report.measures.pairwise}
    cells: dict[int, list[dict[str, Any]]] = {row: [] for row in range(len(report.assessors))}
    for row, at in product(cells, repeat=2):
        pair = found.get((min(row, at), max(row, at)))
        cells[row].append(_build_cell(report, asked, pair, row, at) if pair else {})
    return [{"assessor": report.assessors[row], "cells": line} for row, line in cells.items()]


def _build_cell(report: AgreementReport, asked: AgreementFilters, pair: Pairwise, row: int, at: int) -> dict[str, Any]:
    """A couple's cell of the heat map: its measure, words, and the query string of its pairs."""
    shown: Statistic = getattr(pair, asked.measure)
    a, b = report.name(row), report.name(at)
    names = _("%(a)s and %(b)s") % {"a": a, "b": b}
    copy = report.is_copy(row, at)
    words = _("%(names)s: %(words)s (%(n)s pairs), same model") if copy else _("%(names)s: %(words)s (%(n)s pairs)")
    about = words % {"names": names, "words": format_statistic(shown), "n": f"{pair.n:,}"}
    where = ":".join(["disagree", *([str(asked.binarize)] if asked.binarize else [])])
    where += "" if asked.population == "all" else f":{asked.population}"
    return {
        "pair": pair,
        "shown": shown,
        "percent": pair.percent,
        "heat": heat_class(shown.value),
        "pairs": urlencode({"a": a, "b": b, "cell": where}),
        "names": names,
        "about": about,
        "copy": copy,
    }


def find_weakest(report: AgreementReport, asked: AgreementFilters) -> dict[str, Any] | None:
    """Find the two assessors who agree least, as a cell; None without enough common pairs."""
    found = report.measures.pairwise
    values = np.where(found.n < ENOUGH, np.nan, found.values[:, list(MEASURES).index(asked.measure), 0])
    if not np.isfinite(values).any():
        return None
    at = int(np.nanargmin(values))
    return _build_cell(report, asked, found[at], *found.places[at].tolist())


def heat_class(value: float | None) -> str:
    """Return the class of a value's colour."""
    return "heat-none" if value is None else f"heat-{sum(value >= step for step in STEPS)}"


def draw_heat_map(report: AgreementReport, asked: AgreementFilters) -> Chart:
    """Draw the heat map as a file."""
    found = {(pair.a, pair.b): getattr(pair, asked.measure).value for pair in report.measures.pairwise}
    places = range(len(report.assessors))
    return heat_chart(
        "matrix",
        _("%(measure)s, pairwise") % {"measure": _(MEASURES[asked.measure])},
        {report.name(row): [found.get((min(row, at), max(row, at))) for at in places] for row in places},
        [one.name for one in report.assessors],
        summary=" ".join(summarise_agreement(report, asked)),
        source=f"{report.collection}: {POPULATIONS[report.population]}",
    )


def format_statistic(statistic: Statistic) -> str:
    """Say a statistic in words: 0.42 (95% interval 0.31 to 0.53), or why it is undefined."""
    if statistic.value is None:
        return _("undefined: %(reason)s") % {"reason": _(str(statistic.reason))}
    value = f"{statistic.value:.2f}"
    if statistic.low is None:
        return value
    ends = {"low": f"{statistic.low:.2f}", "high": f"{statistic.high:.2f}"}
    return _("%(value)s (95%% interval %(low)s to %(high)s)") % {"value": value, **ends}


def summarise_agreement(report: AgreementReport, asked: AgreementFilters) -> list[str]:
    """Sum the page up in a few sentences, for those who do not read tables."""
    measures, population = report.measures, _(POPULATIONS[report.population])
    if not measures.items:
        return [_("None of these assessors has graded a pair yet (%(population)s).") % {"population": population}]
    count, alpha = len(report.assessors), measures.alpha_nominal
    people = ngettext("%(count)s assessor", "%(count)s assessors", count) % {"count": count}
    told = {"items": f"{measures.items:,}", "population": population, "prevalence": f"{report.prevalence or 0:.0%}"}
    graded = _("%(people)s graded %(items)s pairs (%(population)s); %(prevalence)s of their grades are relevant.")
    by_alpha = _("Krippendorff's alpha (nominal) is %(words)s, from %(n)s pairs with two or more grades.")
    lines = [
        graded % {"people": people, **told},
        by_alpha % {"n": f"{alpha.n:,}", "words": format_statistic(alpha)},
    ]
    values = measures.pairwise.values[:, list(MEASURES).index(asked.measure), 0]
    if np.isfinite(values).sum() > 1:
        ends = [int(np.nanargmax(values)), int(np.nanargmin(values))]
        most, least = (
            _("%(name)s and %(name2)s") % {"name": report.name(a), "name2": report.name(b)}
            for a, b in measures.pairwise.places[ends].tolist()
        )
        between = _("%(label)s is highest between %(most)s (%(high)s) and lowest between %(least)s (%(low)s).")
        shown = {"high": f"{values[ends[0]]:.2f}", "low": f"{values[ends[1]]:.2f}"}
        lines.append(between % {"label": _(MEASURES[asked.measure]), "most": most, "least": least, **shown})
    return [*lines, *of_itself(report)]


_FIGURES = tuple(f"{name}{part}" for name in MEASURES for part in ("", "_low", "_high"))
CSV_HEADER = ("a", "b", "n", *_FIGURES, "undefined", "copies")


def send_csv(report: AgreementReport) -> HttpResponse:
    """Return the couples of assessors with all measures as a file."""
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{report.collection}-agreement.csv"'
    response.writelines(map(csv_line, chain([CSV_HEADER], csv_rows(report))))
    return response


def csv_rows(report: AgreementReport) -> Iterator[tuple[object, ...]]:
    """Yield the couples of assessors with all measures; undefined values are empty, with their reason behind them."""
    for pair in report.measures.pairwise:
        family: list[Statistic] = [getattr(pair, name) for name in MEASURES]
        figures = [value for one in family for value in (one.value, one.low, one.high)]
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


def list_couples(report: AgreementReport, asked: AgreementFilters, parameters: QueryDict) -> dict[str, Any]:
    """A page of the couples of assessors: `sort` names a column, a minus reverses it."""
    found = report.measures.pairwise
    sort, down, shown = _sortable_list(asked, parameters, "sort", COUPLE_COLUMNS, "-n")
    keys = found.n.astype(float) if sort == "n" else found.values[:, list(MEASURES).index(sort), 0]
    page = _paginate_sorted(keys, down, parameters.get("page"))
    rows = [(found[at], _build_cell(report, asked, found[at], *found.places[at].tolist())) for at in page]
    return {**shown, "rows": rows, "page": page}


def list_assessors(
    report: AgreementReport,
    asked: AgreementFilters,
    parameters: QueryDict,
    estimated: Mapping[str, float],
    cluster: Mapping[int, int],
) -> dict[str, Any]:
    """A page of the assessors against the majority of the others: `by` names a column."""
    by, down, shown = _sortable_list(asked, parameters, "by", ASSESSOR_COLUMNS, "kappa")
    against = report.measures.majority
    keys = {
        "name": np.arange(len(report.assessors), dtype=float),
        "graded": np.array([one.n for one in report.assessors], dtype=float),
        "relevant": np.array([one.prevalence for one in report.assessors], dtype=float),
        "kappa": against.values[:, 0, 0],
        "percent": against.values[:, 3, 0],
        "estimated": np.array([estimated.get(one.name) for one in report.assessors], dtype=float),
    }
    page = _paginate_sorted(keys[by], down, parameters.get("assessors"))
    rows = [(report.assessors[at], against[at], estimated.get(report.name(at)), cluster.get(at)) for at in page]
    return {**shown, "rows": rows, "page": page}


def _paginate_sorted(keys: NDArray[np.float64], down: bool, number: str | None) -> Page[int]:
    """A page of the places in the order of their keys."""
    # NaN stands for what is undefined, and numpy sorts it to the end whichever way the others go.
    order: list[int] = np.argsort(-keys if down else keys, kind="stable").tolist()
    return Paginator(order, ROWS).get_page(number)


def _sortable_list(
    asked: AgreementFilters, parameters: QueryDict, name: str, labels: Mapping[str, str], usual: str
) -> tuple[str, bool, dict[str, Any]]:
    """The column that a list is sorted by, its direction, the headings and the query string."""
    given = parameters.get(name, usual)
    given = given if given.removeprefix("-") in labels else usual
    sort, down = given.removeprefix("-"), given.startswith("-")
    # The page has two lists: turning one keeps the order of the other.
    kept = {key: parameters[key] for key in ("sort", "by") if key in parameters}
    columns = []
    for key, label in labels.items():
        falls = not down if key == sort else key != "name"
        query = f"{asked.query()}&{urlencode(kept | {name: f'-{key}' if falls else key})}"
        direction = ("descending" if down else "ascending") if key == sort else ""
        columns.append({"label": _(label), "query": query, "direction": direction})
    return sort, down, {"columns": columns, "query": f"{asked.query()}&{urlencode(kept | {name: given})}"}
