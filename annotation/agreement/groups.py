"""Agreement of a group as one figure: kappa with percent agreement and prevalence beside it. Pure numpy."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from annotation.agreement.measures import NO_DOUBLE, Statistic, build_statistic
from annotation.agreement.resampling import MISSING, Floats, draw_resamples, group_patterns, percentile_interval


@dataclass(frozen=True, slots=True)
class AssessorGroup:
    """The agreement of a group. `pairs`: those with two grades and more; both figures rest on them alone."""

    pairs: int
    kappa: Statistic
    percent: Statistic
    prevalence: float | None


def group_agreement(grades: NDArray[np.integer], *, bootstrap: int = 0, seed: int = 0) -> AssessorGroup:
    """Krippendorff's nominal alpha (it takes pairs that few of the group graded; with two grades on every pair it is
    Scott's pi) and the mean share of equal couples, over the pairs with two grades and more.

    `grades`: assessors x pairs of 0 and 1, MISSING where there is none. 95% intervals by resampling pairs.
    """
    found = group_patterns(grades)
    yes, graded = (found.grades == 1).sum(axis=0), (found.grades != MISSING).sum(axis=0)
    double = graded >= 2
    yes, graded, counts = yes[double], graded[double], found.counts[double]
    pairs = int(counts.sum())
    if not pairs:
        none = Statistic(None, None, None, 0, NO_DOUBLE)
        return AssessorGroup(0, none, none, None)
    no = graded - yes
    features = np.vstack(
        [(yes * (yes - 1) + no * (no - 1)) / (graded * (graded - 1)), yes * no / (graded - 1), yes, no]
    )
    value = _alpha_and_percent(counts[None].astype(np.float64), features)[:, 0]
    low, high = np.full_like(value, np.nan), np.full_like(value, np.nan)
    if bootstrap:
        drawn = [_alpha_and_percent(weights, features) for weights in draw_resamples(counts, bootstrap, seed)]
        low, high = percentile_interval(np.concatenate(drawn, axis=1).T)
    return AssessorGroup(
        pairs,
        build_statistic(value[0], low[0], high[0], pairs, NO_DOUBLE),
        build_statistic(value[1], low[1], high[1], pairs, NO_DOUBLE),
        float((counts * yes).sum() / (counts * graded).sum()),
    )


def _alpha_and_percent(weights: Floats, features: Floats) -> Floats:
    """Compute alpha and the share of equal couples, for each row of weights."""
    sums = weights.astype(np.float64) @ features.T
    total = sums[:, 2] + sums[:, 3]
    chance = sums[:, 2] * sums[:, 3]
    with np.errstate(divide="ignore", invalid="ignore"):
        alpha = np.where(chance > 0, 1 - (total - 1) * sums[:, 1] / chance, np.nan)
    return np.stack([alpha, sums[:, 0] / weights.sum(axis=1)])
