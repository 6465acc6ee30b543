"""Results of the reference study: means by source, paired difference, raters' agreement."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean, variance
from typing import Any

import numpy as np
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from benchmark.agents.study import RATERS
from benchmark.models import ReferenceStudy, StudyRating
from benchmark.significance.paired import LEVEL, Tests
from charts.downloads import Cell, DownloadTable, Figure

CRITERIA = ("completeness", "quality")
LOW, HIGH = 1, 5
FIGURES = ("model", "person", "difference", "low", "high", "p", "alpha", "same", "near")


def measure_study(study: ReferenceStudy) -> list[dict[str, Any]]:
    """Measure completeness and quality, a line each, over the queries with two ratings that were not withdrawn.

    In a closed study without any such query, use those with one rating, as in the paper; there is no agreement then.
    """
    ratings: dict[int, list[StudyRating]] = defaultdict(list)
    rows = StudyRating.objects.filter(answer__study=study, withdrawal=None)
    for rating in rows.order_by("answer__reference", "pk"):
        ratings[rating.answer_id].append(rating)
    # A single rating is no pair for the agreement, and would weigh as much as two in the means.
    complete = [answer_ratings for answer_ratings in ratings.values() if len(answer_ratings) == RATERS]
    if not complete and study.closed_at is not None:
        complete = list(ratings.values())
    lines = []
    for criterion in CRITERIA:
        model = [[getattr(rating, f"model_{criterion}") for rating in answer_ratings] for answer_ratings in complete]
        person = [[getattr(rating, f"person_{criterion}") for rating in answer_ratings] for answer_ratings in complete]
        lines.append(measure_line(criterion, model, person, study.seed))
    return lines


def measure_line(
    criterion: str, model: Sequence[Sequence[int]], person: Sequence[Sequence[int]], seed: int
) -> dict[str, Any]:
    """Measure one criterion from the raters' values of each query, for the model's answers and for people's.

    A figure is None if there are too few queries or if all ratings are the same.
    """
    if not model:
        return {"criterion": criterion, "queries": 0, **dict.fromkeys(FIGURES)}
    model_means, person_means = [fmean(ratings) for ratings in model], [fmean(ratings) for ratings in person]
    low = high = p = None
    if len(model) > 1:
        # The tests take values from 0 to 1.
        width = HIGH - LOW
        tests = Tests(np.array([model_means, person_means], dtype=np.float64).T / width - LOW / width, seed)
        p = tests.p(0, 1)
        low, high = (bound * width for bound in tests.interval(0, 1, LEVEL))
    pairs = [values for values in (*model, *person) if len(values) == RATERS]
    gaps = [abs(first - second) for first, second in pairs]
    return {
        "criterion": criterion,
        "queries": len(model),
        "model": fmean(model_means),
        "person": fmean(person_means),
        "difference": fmean(model_means) - fmean(person_means),
        "low": low,
        "high": high,
        "p": p,
        "alpha": interval_agreement(pairs) if pairs else None,
        "same": fmean(gap == 0 for gap in gaps) if gaps else None,
        "near": fmean(gap <= 1 for gap in gaps) if gaps else None,
    }


def interval_agreement(pairs: Sequence[Sequence[int]]) -> float | None:
    """Return Krippendorff's alpha (interval) of pairs of ratings; None if all values are equal."""
    # alpha = 1 - observed / expected disagreement. The mean squared difference over all pairs of
    # values is twice their sample variance.
    expected = 2 * variance([value for pair in pairs for value in pair])
    observed = fmean((first - second) ** 2 for first, second in pairs)
    return 1 - observed / expected if expected else None


def criterion_names() -> dict[str, str]:
    """Return the names of the criteria in the reader's language."""
    return {"completeness": _("completeness"), "quality": _("quality")}


def study_table(study: ReferenceStudy, lines: Sequence[Mapping[str, Any]]) -> DownloadTable:
    """Return the table of the study's results for download."""
    values = (_("model"), _("people"), _("difference"), _("interval from"), _("interval to"), _("p"))
    agreement = (_("Krippendorff's alpha"), _("same rating"), _("at most 1 apart"))
    header = (pgettext("column", "criterion"), *values, *agreement, pgettext("column", "queries"))
    names = criterion_names()
    rows: list[tuple[Cell, ...]] = []
    for line in lines:
        rows.append((names[line["criterion"]], *(Figure(line[name]) for name in FIGURES), line["queries"]))
    title = _("Reference answers of the model and of people on %(name)s") % {"name": study.collection.name}
    return DownloadTable("reference-study", title, header, tuple(rows))
