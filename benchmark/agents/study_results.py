"""What the study of reference answers found: means by source, their paired difference, and how raters agree."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, variance

import numpy as np
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from benchmark.agents.study import RATERS
from benchmark.models import ReferenceStudy, StudyRating
from benchmark.report.downloads import Cell, DownloadTable, Figure
from benchmark.significance.paired import LEVEL, Tests

CRITERIA = ("completeness", "quality")
LOW, HIGH = 1, 5


@dataclass(frozen=True, slots=True)
class StudyLine:
    """One criterion over the queries that both raters rated. None: too few queries, or all ratings are the same."""

    criterion: str
    queries: int
    model: float | None
    person: float | None
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    alpha: float | None
    same: float | None
    near: float | None


def measure_study(study: ReferenceStudy) -> list[StudyLine]:
    """A line for completeness and one for quality, over the queries with two ratings that were not undone."""
    ratings: dict[int, list[StudyRating]] = defaultdict(list)
    rows = StudyRating.objects.filter(answer__study=study, withdrawal=None)
    for one in rows.order_by("answer__reference", "pk"):
        ratings[one.answer_id].append(one)
    whole = [found for found in ratings.values() if len(found) == RATERS]
    lines = []
    for criterion in CRITERIA:
        model = [[getattr(one, f"model_{criterion}") for one in found] for found in whole]
        person = [[getattr(one, f"person_{criterion}") for one in found] for found in whole]
        lines.append(measure_line(criterion, model, person, study.seed))
    return lines


def measure_line(
    criterion: str, model: Sequence[Sequence[int]], person: Sequence[Sequence[int]], seed: int
) -> StudyLine:
    """One criterion from both raters' values by query, of the model's answers and of people's."""
    if not model:
        return StudyLine(criterion, 0, *[None] * 9)
    ours, theirs = [fmean(one) for one in model], [fmean(one) for one in person]
    low = high = p = None
    if len(model) > 1:
        # The tests take values from 0 to 1.
        width = HIGH - LOW
        tests = Tests(np.array([ours, theirs], dtype=np.float64).T / width - LOW / width, seed)
        p = tests.p(0, 1)
        low, high = (bound * width for bound in tests.interval(0, 1, LEVEL))
    pairs = [*model, *person]
    gaps = [abs(first - second) for first, second in pairs]
    return StudyLine(
        criterion,
        len(model),
        fmean(ours),
        fmean(theirs),
        fmean(ours) - fmean(theirs),
        low,
        high,
        p,
        interval_agreement(pairs),
        fmean(gap == 0 for gap in gaps),
        fmean(gap <= 1 for gap in gaps),
    )


def interval_agreement(pairs: Sequence[Sequence[int]]) -> float | None:
    """Krippendorff's alpha with interval distances of two ratings each; None where all values are the same."""
    expected = 2 * variance([value for pair in pairs for value in pair])
    observed = fmean((first - second) ** 2 for first, second in pairs)
    return 1 - observed / expected if expected else None


def criterion_names() -> dict[str, str]:
    """What the criteria are called."""
    return {"completeness": _("completeness"), "quality": _("quality")}


def study_table(study: ReferenceStudy, lines: Sequence[StudyLine]) -> DownloadTable:
    """The table as it is taken away."""
    values = (_("model"), _("people"), _("difference"), _("interval from"), _("interval to"), _("p"))
    agreement = (_("Krippendorff's alpha"), _("same rating"), _("at most 1 apart"))
    header = (pgettext("column", "criterion"), *values, *agreement, pgettext("column", "queries"))
    names = criterion_names()
    rows: list[tuple[Cell, ...]] = []
    for one in lines:
        figures = (one.model, one.person, one.difference, one.low, one.high, one.p, one.alpha, one.same, one.near)
        rows.append((names[one.criterion], *map(Figure, figures), one.queries))
    title = _("Reference answers of the model and of people on %(name)s") % {"name": study.collection.name}
    return DownloadTable("reference-study", title, header, tuple(rows))
