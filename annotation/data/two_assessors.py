"""Comparison of two assessors: how often each grade of one met each grade of the other."""

from typing import Any
from urllib.parse import urlencode

import numpy as np
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from annotation.agreement.cached_results import get_figures
from annotation.agreement.grade_matrix import choose_assessors, load_grade_matrix, options_of, visible_assessors
from annotation.agreement.measures import Pairwise
from annotation.agreement.page import MEASURES, POPULATIONS, AgreementFilters, format_statistic
from annotation.agreement.report import AgreementReport, agreement_report, describe_copies
from annotation.agreement.resampling import MISSING, RESAMPLES
from annotation.data.disagreements import compare_directions, list_disagreements
from annotation.data.pair_filters import PairFilters
from charts import draw_heatmap
from corpus.errors import BadInput
from corpus.labels import name_grade
from corpus.models import Collection


def compare_assessors(
    collection: Collection, filters: PairFilters, number: str | None = None, *, hides_people: bool = False
) -> dict[str, Any]:
    """Measure how the two assessors that `filters` names agree; its `cell` says on which grades (grade_matrix).

    `number`: the page of the list of pairs; `hides_people`: people have a number in place of their name.
    Raises BadInput for an unknown assessor, or the same one twice.
    """
    if filters.a == filters.b:
        raise BadInput(_("%(a)s: an assessor cannot be compared with themself; name two") % {"a": filters.a})
    kind, binarize, population = options_of(filters.cell or "disagree")
    assessors = visible_assessors(collection, hides_people=hides_people)
    couple = [choose_assessors(assessors, names=[name])[0] for name in (filters.a, filters.b)]
    everybody = AgreementFilters(tuple(choose_assessors(assessors)), population, "kappa", binarize, everybody=True)
    shared = _find_couple(get_figures(collection, everybody, assessors).report, filters.a, filters.b)
    # Where the Quality page has an interval it is shown here, too: a second bootstrap would give another.
    resamples = 0 if shared else RESAMPLES
    report = agreement_report(collection, couple, binarize=binarize, bootstrap=resamples, population=population)
    measured = shared or report.measures.pairwise[0]
    row_of = {assessor.name: row for row, assessor in enumerate(report.found.assessors)}
    # The cross table: counts of a's grades x b's grades, over pairs that both graded.
    graded = report.found.grades[[row_of[filters.a], row_of[filters.b]]]
    first, second = (row[(graded != MISSING).all(axis=0)].astype(np.int64) for row in graded)
    size = 2 if binarize else collection.grades + 1
    counts = np.bincount(first * size + second, minlength=size * size).reshape(size, size)
    matrix = load_grade_matrix(collection, couple, population=population)
    suffix = f"{f':{binarize}' if binarize else ''}{'' if population == 'all' else f':{population}'}"
    grades: tuple[str, ...]
    if binarize:
        bound = {"bound": binarize}
        grades = (_("not relevant (below %(bound)s)") % bound, _("relevant (%(bound)s or higher)") % bound)
    else:
        grades = tuple(
            name_grade(grade, collection.grades, collection.grade_names) for grade in range(collection.grades + 1)
        )
    # Both grades of the cell whose pairs are listed below the table, if `kind` is a cell ("0x1").
    indices = [int(part) for part in kind.split("x") if part.isdecimal()]
    cell = [grades[index] for index in indices if index < len(grades)]
    names = {"a": filters.a, "b": filters.b}
    values = {
        "n": f"{measured.n:,}",
        "int": f"{int(np.trace(counts)):,}",
        "words": format_statistic(measured.kappa),
        "over": _(POPULATIONS[population]),
    }
    sentence = _(
        "%(a)s and %(b)s both graded %(n)s pairs (over %(over)s) and gave the same grade to %(int)s. "
        "Cohen's kappa is %(words)s."
    ) % {**names, **values}
    summary = " ".join([sentence, *describe_copies(report)])
    chart = draw_heatmap(
        "cross-table",
        _("Grades of %(a)s and %(b)s") % names,
        {f"{filters.a}: {grade}": [float(n) for n in counts[x]] for x, grade in enumerate(grades)},
        [f"{filters.b}: {grade}" for grade in grades],
        high=max(float(counts.max(initial=0)), 1.0),
        summary=summary,
        source=_("%(name)s: pairs that both graded") % {"name": collection.name},
        links={(x, y + 1): f"?{_build_query(filters, f'{x}x{y}{suffix}')}" for x, y in np.ndindex(counts.shape)},
    )
    return {
        **names,
        # Of two grades, every weighting gives the same kappa.
        "measures": [
            (_(label), getattr(measured, name))
            for name, label in MEASURES.items()
            if size > 2 or name not in ("kappa_linear", "kappa_quadratic")
        ],
        "grades": grades,
        "rows": _build_rows(filters, counts, grades, kind, suffix),
        "summary": summary,
        "kind": kind,
        "list": list_disagreements(collection, matrix, kind, binarize, number),
        "direction": compare_directions(matrix, binarize, collection.relevant_from),
        "above": _build_query(filters, f"above{suffix}"),
        "below": _build_query(filters, f"below{suffix}"),
        "cell": cell if len(cell) == 2 else [],
        # Query strings: of all pairs on which they differ, and of this page.
        "disagree": _build_query(filters, f"disagree{suffix}"),
        "query": _build_query(filters, filters.cell),
        "chart": chart,
    }


def _find_couple(report: AgreementReport | None, a: str, b: str) -> Pairwise | None:
    """Return the agreement of two assessors from the Quality page's report; None: they are not in it."""
    places = {assessor.name: at for at, assessor in enumerate(report.assessors)} if report else {}
    if report is None or not {a, b} <= places.keys():
        return None
    rows = sorted((places[a], places[b]))
    pairwise = report.measures.pairwise
    at = np.flatnonzero((pairwise.places == rows).all(axis=1))
    return pairwise[int(at[0])] if len(at) else None


def _build_rows(
    filters: PairFilters, counts: NDArray[np.int64], grades: tuple[str, ...], kind: str, suffix: str
) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return the rows of the cross table, each with its grade and cells; a cell's `query` lists its pairs below."""
    rows = []
    for x, grade in enumerate(grades):
        cells = [
            {
                "count": int(counts[x, y]),
                "query": _build_query(filters, f"{x}x{y}{suffix}"),
                "equal": x == y,
                "chosen": kind == f"{x}x{y}",
                "x": x,
                "y": y,
                "grade": grade,
                "other": other,
            }
            for y, other in enumerate(grades)
        ]
        rows.append((grade, cells))
    return rows


def _build_query(filters: PairFilters, cell: str) -> str:
    return urlencode({"a": filters.a, "b": filters.b, **({"cell": cell} if cell else {})})
