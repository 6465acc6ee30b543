"""Comparison of two assessors: how often each grade of one met each grade of the other."""

from typing import Any
from urllib.parse import urlencode

import numpy as np
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from annotation.agreement.cached_results import get_figures
from annotation.agreement.grade_matrix import choose_assessors, known_assessors, load_grade_matrix, options_of
from annotation.agreement.measures import Pairwise
from annotation.agreement.page import MEASURES, POPULATIONS, AgreementFilters, format_statistic
from annotation.agreement.report import AgreementReport, agreement_report, of_itself
from annotation.agreement.resampling import MISSING, RESAMPLES
from annotation.data.disagreements import compare_directions, list_disagreements
from annotation.data.pair_filters import PairFilters
from charts import Chart, draw_heatmap
from corpus.errors import BadInput
from corpus.labels import name_grade
from corpus.models import Collection


def compare_assessors(collection: Collection, filters: PairFilters, number: str | None = None) -> dict[str, Any]:
    """Measure how the two assessors that `filters` names agree; its `cell` says on which grades (grade_matrix).

    `number`: the page of the list of pairs.
    Raises BadInput for a name that is no assessor's, or twice the same.
    """
    if filters.a == filters.b:
        raise BadInput(_("%(a)s: an assessor cannot be compared with themself; name two") % {"a": filters.a})
    kind, binarize, population = options_of(filters.cell or "disagree")
    known = known_assessors(collection)
    chosen = [choose_assessors(known, names=[name])[0] for name in (filters.a, filters.b)]
    everybody = AgreementFilters(tuple(choose_assessors(known)), population, "kappa", binarize, everybody=True)
    shared = _find_couple(get_figures(collection, everybody, known).report, filters.a, filters.b)
    # Its interval is shown where the Quality page has it: another draw would give the same pair a second interval.
    resamples = 0 if shared else RESAMPLES
    report = agreement_report(collection, chosen, binarize=binarize, bootstrap=resamples, population=population)
    measured = shared or report.measures.pairwise[0]
    place = {one.name: row for row, one in enumerate(report.found.assessors)}
    counts = _cross_table(
        report.found.grades[[place[filters.a], place[filters.b]]], 1 if binarize else collection.grades
    )
    given = load_grade_matrix(collection, chosen, population=population)
    rest = f"{f':{binarize}' if binarize else ''}{'' if population == 'all' else f':{population}'}"
    grades = _name_grades(collection.grades, binarize)
    names = {"a": filters.a, "b": filters.b}
    summary = _summarise_couple(names, measured, int(np.trace(counts)), _(POPULATIONS[population]), report)
    return {
        **names,
        "measures": [(_(label), getattr(measured, name)) for name, label in MEASURES.items()],
        "grades": grades,
        "rows": _build_rows(filters, counts, grades, kind, rest),
        "summary": summary,
        "kind": kind,
        "list": list_disagreements(collection, given, kind, binarize, number),
        "direction": compare_directions(given, binarize, collection.relevant_from),
        "above": _build_query(filters, f"above{rest}"),
        "below": _build_query(filters, f"below{rest}"),
        "cell": _read_cell(kind, grades),
        # Query strings: of all pairs on which they differ, and this page's own.
        "disagree": _build_query(filters, f"disagree{rest}"),
        "query": _build_query(filters, filters.cell),
        "chart": _draw_chart(filters, counts, grades, summary, collection.name, rest),
    }


def _name_grades(highest: int, bound: int | None) -> tuple[str, ...]:
    """Return the grades of the cross table in words; with a bound there are two."""
    if not bound:
        return tuple(name_grade(grade, highest) for grade in range(highest + 1))
    return (
        _("not relevant (below %(bound)s)") % {"bound": bound},
        _("relevant (%(bound)s or higher)") % {"bound": bound},
    )


def _read_cell(kind: str, grades: tuple[str, ...]) -> list[str]:
    """Return both grades of the cell whose pairs stand below the table; none where no such cell was asked for."""
    places = [int(place) for place in kind.split("x") if place.isdecimal()]
    cell = [grades[place] for place in places if place < len(grades)]
    return cell if len(cell) == 2 else []


def _summarise_couple(names: dict[str, str], measured: Pairwise, equal: int, over: str, report: AgreementReport) -> str:
    found = {"n": f"{measured.n:,}", "int": f"{equal:,}", "words": format_statistic(measured.kappa), "over": over}
    summary = _(
        "%(a)s and %(b)s both graded %(n)s pairs (over %(over)s) and gave the same grade to %(int)s. "
        "Cohen's kappa is %(words)s."
    ) % {**names, **found}
    return " ".join([summary, *of_itself(report)])


def _find_couple(report: AgreementReport | None, a: str, b: str) -> Pairwise | None:
    """Find two assessors among those of the Quality page, whose intervals are shown here, too; None: not there."""
    places = {one.name: at for at, one in enumerate(report.assessors)} if report else {}
    if report is None or not {a, b} <= places.keys():
        return None
    wanted = sorted((places[a], places[b]))
    found = report.measures.pairwise
    at = np.flatnonzero((found.places == wanted).all(axis=1))
    return found[int(at[0])] if len(at) else None


def _cross_table(grades: NDArray[np.integer], highest: int) -> NDArray[np.int64]:
    """Return the counts of a's grades x b's grades, over pairs that both graded."""
    first, second = (row[(grades != MISSING).all(axis=0)].astype(np.int64) for row in grades)
    size = highest + 1
    return np.bincount(first * size + second, minlength=size * size).reshape(size, size)


def _build_rows(
    filters: PairFilters, counts: NDArray[np.int64], grades: tuple[str, ...], kind: str, rest: str
) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return the rows of the cross table, each with its grade and its cells."""
    places = range(len(grades))
    return [
        (
            grade,
            [_build_crossing(filters, counts, x, y, kind, rest) | {"grade": grade, "other": grades[y]} for y in places],
        )
        for x, grade in enumerate(grades)
    ]


def _build_crossing(
    filters: PairFilters, counts: NDArray[np.int64], x: int, y: int, kind: str, rest: str
) -> dict[str, Any]:
    """A cell of the cross table; its `query` is this page's with the cell's pairs below."""
    cell = f"{x}x{y}"
    query = _build_query(filters, cell + rest)
    return {"count": int(counts[x, y]), "query": query, "equal": x == y, "chosen": kind == cell, "x": x, "y": y}


def _build_query(filters: PairFilters, cell: str) -> str:
    return urlencode({"a": filters.a, "b": filters.b, **({"cell": cell} if cell else {})})


def _draw_chart(
    filters: PairFilters, counts: NDArray[np.int64], grades: tuple[str, ...], summary: str, name: str, rest: str
) -> Chart:
    rows = {f"{filters.a}: {grade}": [float(n) for n in counts[x]] for x, grade in enumerate(grades)}
    return draw_heatmap(
        "cross-table",
        _("Grades of %(a)s and %(b)s") % {"a": filters.a, "b": filters.b},
        rows,
        [f"{filters.b}: {grade}" for grade in grades],
        high=max(float(counts.max(initial=0)), 1.0),
        summary=summary,
        source=_("%(name)s: pairs that both graded") % {"name": name},
        links={(x, y + 1): f"?{_build_query(filters, f'{x}x{y}{rest}')}" for x, y in np.ndindex(counts.shape)},
    )
