"""Two assessors closely: how often each grade of one met each grade of the other."""

from typing import Any
from urllib.parse import urlencode

import numpy as np
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from annotation.agreement.grade_matrix import choose_assessors, known_assessors, options_of
from annotation.agreement.page import MEASURES, format_statistic
from annotation.agreement.report import agreement_report, of_itself
from annotation.agreement.resampling import MISSING, RESAMPLES
from annotation.data.pairs import PairFilters
from charts import Chart, draw_heatmap
from corpus.errors import BadInput
from corpus.models import Collection


def compare_assessors(collection: Collection, filters: PairFilters) -> dict[str, Any]:
    """Measure how the two assessors that `filters` names agree; its `cell` says on which grades (grade_matrix).

    Raises BadInput for a name that is no assessor's, or twice the same.
    """
    if filters.a == filters.b:
        raise BadInput(_("%(a)s: an assessor cannot be compared with themself; name two") % {"a": filters.a})
    kind, binarize, population = options_of(filters.cell or "disagree")
    known = known_assessors(collection)
    chosen = [choose_assessors(known, names=[name])[0] for name in (filters.a, filters.b)]
    report = agreement_report(collection, chosen, binarize=binarize, bootstrap=RESAMPLES, population=population)
    place = {one.name: row for row, one in enumerate(report.found.assessors)}
    counts = _cross_table(
        report.found.grades[[place[filters.a], place[filters.b]]], 1 if binarize else collection.grades
    )
    rest = f"{f':{binarize}' if binarize else ''}{':escalated' if population == 'escalated' else ''}"
    (measured,) = report.measures.pairwise
    grades = (
        ("below", _("%(binarize)s and more") % {"binarize": binarize})
        if binarize
        else tuple(map(str, range(collection.grades + 1)))
    )
    places = [int(place) for place in kind.split("x") if place.isdecimal()]
    cell = [grades[place] for place in places if place < len(grades)]
    over = _("escalated pairs") if population == "escalated" else _("all pairs")
    names = {"a": filters.a, "b": filters.b}
    found = {"n": f"{measured.n:,}", "int": f"{np.trace(counts):,}", "words": format_statistic(measured.kappa)}
    summary = _(
        "%(a)s and %(b)s both graded %(n)s pairs (over %(over)s) and gave the same grade to %(int)s. "
        "Cohen's kappa is %(words)s."
    ) % {**names, **found, "over": over}
    summary = " ".join([summary, *of_itself(report)])
    return {
        **names,
        "measures": [(_(label), getattr(measured, name)) for name, label in MEASURES.items()],
        "grades": grades,
        "rows": [
            (grade, [_build_crossing(filters, counts, x, y, kind, rest) for y in range(len(grades))])
            for x, grade in enumerate(grades)
        ],
        "summary": summary,
        "kind": kind,
        # The grades of the cell whose pairs stand below, where one was asked for.
        "cell": cell if len(cell) == 2 else [],
        # Query strings: of all pairs on which they differ, and this page's own.
        "disagree": _build_query(filters, f"disagree{rest}"),
        "query": _build_query(filters, filters.cell),
        "chart": _draw_chart(filters, counts, grades, summary, collection.name),
    }


def _cross_table(grades: NDArray[np.integer], highest: int) -> NDArray[np.int64]:
    """a's grades x b's grades, over pairs that both graded."""
    first, second = (row[(grades != MISSING).all(axis=0)].astype(np.int64) for row in grades)
    size = highest + 1
    return np.bincount(first * size + second, minlength=size * size).reshape(size, size)


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
    filters: PairFilters, counts: NDArray[np.int64], grades: tuple[str, ...], summary: str, name: str
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
    )
