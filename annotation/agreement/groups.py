"""Agreement of a group of assessors: alpha, percent agreement and prevalence. Pure numpy."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotation.agreement.measures import (
    NO_DOUBLE,
    Statistic,
    build_statistic,
    count_double,
    estimate_intervals,
    krippendorff_alphas,
)
from annotation.agreement.resampling import Draws, Floats, group_patterns


class AssessorGroup(NamedTuple):
    """The agreement of a group."""

    pairs: int  # Pairs with at least two grades, over which both figures are computed.
    kappa: Statistic
    percent: Statistic
    prevalence: float | None


def group_agreement(grades: NDArray[np.integer], *, bootstrap: int = 0, seed: int = 0) -> AssessorGroup:
    """Compute Krippendorff's nominal alpha and the mean share of equal couples, over pairs with at least two grades.

    `grades`: assessors x pairs of 0 and 1, MISSING without a grade. Alpha takes pairs that only some of
    the group graded; with two grades on every pair it is Scott's pi. 95%
    intervals by resampling pairs.
    """
    grade_counts, counts = count_double(group_patterns(grades))
    pairs = int(counts.sum())
    if not pairs:
        undefined = Statistic(None, None, None, 0, NO_DOUBLE)
        return AssessorGroup(0, undefined, undefined, None)
    graded = grade_counts.sum(axis=0)
    # The share of equal ordered couples of grades on each pair.
    equal = (grade_counts * (grade_counts - 1)).sum(axis=0) / (graded * (graded - 1))
    alphas = krippendorff_alphas(grade_counts)

    def alpha_and_percent(weights: Floats) -> Floats:
        weights = weights.astype(np.float64)
        return np.stack([alphas(weights)[:, 0], weights @ equal / weights.sum(axis=1)], axis=1)

    estimates = estimate_intervals(alpha_and_percent, Draws(counts, bootstrap, seed))
    kappa, percent = (build_statistic(*bounds, pairs, NO_DOUBLE) for bounds in estimates)
    relevant = (counts * grade_counts[1:].sum(axis=0)).sum()
    return AssessorGroup(pairs, kappa, percent, float(relevant / (counts * graded).sum()))
