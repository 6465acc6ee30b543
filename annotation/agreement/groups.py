"""Agreement of a group: kappa with percent agreement and prevalence beside it. Pure numpy."""

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

    pairs: int  # Those with two grades and more: both figures rest on them alone.
    kappa: Statistic
    percent: Statistic
    prevalence: float | None


def group_agreement(grades: NDArray[np.integer], *, bootstrap: int = 0, seed: int = 0) -> AssessorGroup:
    """Krippendorff's nominal alpha (it takes pairs that few of the group graded; with two grades on
    every pair it is Scott's pi) and the mean share of equal couples, over the pairs with two grades
    and more.

    `grades`: assessors x pairs of 0 and 1, MISSING where there is none. 95% intervals by resampling pairs.
    """
    given, counts = count_double(group_patterns(grades))
    pairs = int(counts.sum())
    if not pairs:
        none = Statistic(None, None, None, 0, NO_DOUBLE)
        return AssessorGroup(0, none, none, None)
    graded = given.sum(axis=0)
    # Of two grades on a pair, the share that is equal: ordered couples that agree over all.
    equal = (given * (given - 1)).sum(axis=0) / (graded * (graded - 1))
    alphas = krippendorff_alphas(given)

    def alpha_and_percent(weights: Floats) -> Floats:
        weights = weights.astype(np.float64)
        return np.stack([alphas(weights)[:, 0], weights @ equal / weights.sum(axis=1)], axis=1)

    both = estimate_intervals(alpha_and_percent, Draws(counts, bootstrap, seed))
    kappa, percent = (build_statistic(*bounds, pairs, NO_DOUBLE) for bounds in both)
    yes = (counts * given[1:].sum(axis=0)).sum()
    return AssessorGroup(pairs, kappa, percent, float(yes / (counts * graded).sum()))
