"""Kappa of two people's importances or decisions; the bootstrap resamples whole queries (BRIGHT-Pro 3.3). Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from annotation.agreement.cohen import cohen_kappas
from annotation.agreement.measures import NO_ITEM, Statistic, build_statistic
from annotation.agreement.resampling import Floats, Grades, percentile_interval

RESAMPLES = 2_000
LEVELS = range(1, 6)

# The importances, or decisions, of each query: (the first person's, the second's).
Readings = Sequence[Sequence[tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of two people on `aspects` (or decisions) of `queries`; `table`: first x second."""

    queries: int
    aspects: int
    plain: Statistic
    linear: Statistic
    quadratic: Statistic
    percent: Statistic
    table: list[list[int]]


def importance_agreement(
    readings: Readings, *, resamples: int = RESAMPLES, seed: int = 0, levels: range = LEVELS
) -> Agreement:
    """Compute plain, linear and quadratic weighted kappa and percent agreement, with 95% intervals.

    `levels`: the values, such as 0 and 1 for decisions, for which the weighted kappas equal the plain one.
    """
    readings = [reading for reading in readings if reading]
    pairs = [pair for reading in readings for pair in reading]
    grades: Grades = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    values = _kappa_values(np.ones((1, len(pairs))), grades)[:, 0] if pairs else np.full(4, np.nan)
    low = high = values * np.nan
    if resamples > 0 and len(readings) > 1:
        # Each resample draws as many queries as there are, with all their aspects.
        owner = np.repeat(np.arange(len(readings)), [len(reading) for reading in readings])
        probabilities = np.full(len(readings), 1 / len(readings))
        drawn = np.random.default_rng(seed).multinomial(len(readings), probabilities, size=resamples)
        low, high = percentile_interval(_kappa_values(drawn[:, owner].astype(np.float64), grades).T)
    plain, linear, quadratic, percent = (
        build_statistic(values[k], low[k], high[k], len(pairs), NO_ITEM) for k in range(4)
    )
    table = [[pairs.count((first, second)) for second in levels] for first in levels]
    return Agreement(len(readings), len(pairs), plain, linear, quadratic, percent, table)


def _kappa_values(weights: Floats, grades: Grades) -> Floats:
    """Return (plain, linear, quadratic, percent) x resamples."""
    kappas = cohen_kappas(weights, grades, [(0, 1)])
    return np.stack([kappas.kappa[:, 0], kappas.linear[:, 0], kappas.quadratic[:, 0], kappas.percent[:, 0]])
