"""Intervals of a share: exact, valid under repeated looks, and over strata. Pure.

Clopper and Pearson, Biometrika 26 (1934), for one look. For a bound that holds at all sample sizes
at once, so that a stratum may be stopped whenever it looks decided: the beta-binomial mixture with
a uniform prior, a martingale whose running maximum Ville's inequality bounds (Robbins, Annals of
Mathematical Statistics 41, 1970).
"""

from collections.abc import Sequence
from math import log, sqrt
from typing import NamedTuple

from annotation.agreement.measures import Statistic

LEVEL = 0.95


class Interval(NamedTuple):
    """The bounds of an interval, both in 0..1."""

    low: float
    high: float


class Stratum(NamedTuple):
    """A part of a population: `right` of `n` sampled out of `size`, which may be weighted."""

    size: float
    n: float
    right: float


def clopper_pearson(right: float, n: float, level: float = LEVEL) -> Interval:
    """Return the Clopper-Pearson interval, also of fractional (effective) sizes; 0..1 for n = 0."""
    from scipy.special import betaincinv

    if n <= 0:
        return Interval(0.0, 1.0)
    tail, wrong = (1 - level) / 2, n - right
    low = 0.0 if right <= 0 else float(betaincinv(right, wrong + 1, tail))
    high = 1.0 if wrong <= 0 else float(betaincinv(right + 1, wrong, 1 - tail))
    return Interval(low, high)


def share_statistic(hits: Sequence[bool], reason: str) -> Statistic:
    """Return the share of True with its exact interval; undefined with the reason for an empty sequence."""
    if not hits:
        return Statistic(None, None, None, 0, reason)
    return Statistic(sum(hits) / len(hits), *clopper_pearson(sum(hits), len(hits)), len(hits), None)


def confidence_sequence(right: int, n: int, level: float = LEVEL) -> Interval:
    """Return the interval of shares whose mixture martingale never reached 1 / (1 - level), valid at every n."""
    from scipy.optimize import bisect
    from scipy.special import betaln, xlog1py, xlogy

    if n <= 0:
        return Interval(0.0, 1.0)
    wrong = n - right
    # The log of (1 - level) B(r + 1, w + 1): the mixture over a uniform prior, bounded by Ville's inequality.
    bound = betaln(right + 1, wrong + 1) + log(1 - level)

    def excess(share: float) -> float:
        return float(xlogy(right, share) + xlog1py(wrong, -share) - bound)

    # The likelihood is highest at the observed share and falls on both sides, so each side has one root.
    return Interval(*(end if excess(end) >= 0 else bisect(excess, right / n, end) for end in (0.0, 1.0)))


def weighted_sequence(strata: Sequence[Stratum], level: float = LEVEL) -> Interval:
    """Return bounds of the share over all sampled strata, valid at all sample sizes at once; 0..1 without any."""
    sampled = [stratum for stratum in strata if stratum.n > 0 and stratum.size > 0]
    total = sum(stratum.size for stratum in sampled)
    low, high = 0.0, 0.0 if sampled else 1.0
    for stratum in sampled:
        # The level is divided among the strata (Bonferroni), so that all bounds are valid at once.
        bounds = confidence_sequence(round(stratum.right), round(stratum.n), 1 - (1 - level) / len(sampled))
        low += stratum.size / total * bounds.low
        high += stratum.size / total * bounds.high
    return Interval(low, min(1.0, high))


def stratified_share(strata: Sequence[Stratum], level: float = LEVEL) -> tuple[float, Interval] | None:
    """Return the share over the sampled strata, weighted by their sizes, and its interval; None without any.

    The interval combines the strata's exact intervals by the method of Donner and Zou (Statistics in
    Medicine 29, 2010; "variance recovered from limits"), so that it does not shrink to a point when
    every audited label was right.
    """
    sampled = [stratum for stratum in strata if stratum.n > 0 and stratum.size > 0]
    total = sum(stratum.size for stratum in sampled)
    if not total:
        return None
    value = below = above = 0.0
    for stratum in sampled:
        weight, share = stratum.size / total, stratum.right / stratum.n
        low, high = clopper_pearson(stratum.right, stratum.n, level)
        value += weight * share
        # The squared distances from the estimate to each stratum's exact bounds add up like variances.
        below += (weight * (share - low)) ** 2
        above += (weight * (high - share)) ** 2
    return value, Interval(max(0.0, value - sqrt(below)), min(1.0, value + sqrt(above)))
