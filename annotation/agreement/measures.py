"""Kappa and its relatives over a matrix of grades, with bootstrap intervals by item. Pure numpy.

A matrix of grades is assessors x items; grades are integers from 0, MISSING (-1) where there is none. Every measure is
a function of sums over items, so a resample is one row of weights times features of the items (MECHANICS M4).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from annotation.agreement.cohen import cohen
from annotation.agreement.resampling import MISSING, Floats, Grades, Patterns, interval, patterns, resamples
from corpus.phrases import gettext_noop

NO_ITEM = gettext_noop("no pair was graded by both")
ONE_GRADE = gettext_noop("every grade is the same, so there is nothing to agree about beyond chance")
ONE_ASSESSOR = gettext_noop("fewer than two assessors")
NOT_ALL = gettext_noop("no pair was graded by all assessors")
NO_DOUBLE = gettext_noop("no pair has two grades")

Number = float | np.floating | Floats
"""One number; a Floats here has no axis."""

Measure = Callable[[Floats], Floats]
"""Weights of the patterns (resamples x patterns) to values (resamples x whatever is measured)."""


@dataclass(frozen=True, slots=True)
class Statistic:
    """A measure. `value` None: undefined, with the `reason`. `low`, `high`: 95% interval. `n`: items it rests on."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    reason: str | None


@dataclass(frozen=True, slots=True)
class Pairwise:
    """Two assessors, by their places in the matrix. Against the majority of the others: `a` and `b` are equal."""

    a: int
    b: int
    n: int
    kappa: Statistic
    kappa_linear: Statistic
    kappa_quadratic: Statistic
    percent: Statistic


@dataclass(frozen=True, slots=True)
class Measures:
    """All measures of a matrix. `items`: those that at least one assessor graded."""

    items: int
    pairwise: tuple[Pairwise, ...]
    fleiss: Statistic
    alpha_nominal: Statistic
    alpha_ordinal: Statistic
    alpha_interval: Statistic
    majority: tuple[Pairwise, ...]


def measure(grades: NDArray[np.integer], *, bootstrap: int = 0, seed: int = 0) -> Measures:
    """Every measure for assessors x items; `bootstrap` resamples of the items for the intervals, 0 for none."""
    found = patterns(grades)
    assessors = len(found.grades)
    between = list(combinations(range(assessors), 2))
    against = [(place, assessors + place) for place in range(assessors)]
    rows = np.vstack([found.grades, majorities(found)])
    values, low, high = _estimate(
        found.counts, (_cohen(rows, [*between, *against]), _fleiss(found), _alphas(found)), bootstrap, seed
    )
    family = _family(between, assessors, values[0], low[0], high[0])
    graded = (found.grades != MISSING).sum(axis=0)
    full, double = (int(found.counts[graded >= max(least, 2)].sum()) for least in (assessors, 2))
    none, nowhere = (ONE_ASSESSOR, ONE_ASSESSOR) if assessors < 2 else (NOT_ALL, NO_DOUBLE)
    nominal, ordinal, by_distance = (_statistic(values[2][k], low[2][k], high[2][k], double, nowhere) for k in range(3))
    return Measures(
        items=found.items,
        pairwise=family[: len(between)],
        fleiss=_statistic(values[1], low[1], high[1], full, none),
        alpha_nominal=nominal,
        alpha_ordinal=ordinal,
        alpha_interval=by_distance,
        majority=family[len(between) :],
    )


def majorities(found: Patterns) -> Grades:
    """For each assessor the grade that most of the others gave; MISSING where they tie or there is none."""
    hot = found.grades[:, None, :] == np.arange(found.width)[None, :, None]
    total = hot.sum(axis=0)
    result = np.full_like(found.grades, MISSING)
    for place, mine in enumerate(hot):
        others = total - mine
        most = others.max(axis=0)
        alone = ((others == most).sum(axis=0) == 1) & (most > 0)
        result[place] = np.where(alone, others.argmax(axis=0), MISSING)
    return result


def _estimate(
    counts: NDArray[np.int64], parts: Sequence[Measure], bootstrap: int, seed: int
) -> tuple[list[Floats], list[Floats], list[Floats]]:
    """Values in double precision, and the bounds of their intervals from the same resamples; NaN where undefined."""
    values = [part(counts[None].astype(np.float64))[0] for part in parts]
    drawn: list[list[Floats]] = [[] for _ in parts]
    for weights in resamples(counts, bootstrap, seed):
        for kept, part in zip(drawn, parts, strict=True):
            kept.append(part(weights))
    if not bootstrap:
        unknown = [np.full_like(value, np.nan) for value in values]
        return values, unknown, unknown
    bounds = [
        interval(np.concatenate(kept)) if kept else (value, value) for kept, value in zip(drawn, values, strict=True)
    ]
    return values, [low for low, _ in bounds], [high for _, high in bounds]


def _cohen(rows: Grades, pairs: Sequence[tuple[int, int]]) -> Measure:
    """Values: pairs x (n, kappa, linear, quadratic, percent)."""

    def values(weights: Floats) -> Floats:
        if not pairs:
            return np.zeros((len(weights), 0, 5))
        return np.stack(cohen(weights, rows, pairs), axis=2)

    return values


def _family(
    between: Sequence[tuple[int, int]], assessors: int, values: Floats, low: Floats, high: Floats
) -> tuple[Pairwise, ...]:
    """Cohen's family of the pairs, then of each assessor against the majority of the others."""
    pairs = [*between, *((place, place) for place in range(assessors))]
    family = []
    for at, (a, b) in enumerate(pairs):
        n = round(float(values[at, 0]))
        measured = [_statistic(values[at, k], low[at, k], high[at, k], n, NO_ITEM) for k in range(1, 5)]
        family.append(Pairwise(a, b, n, *measured))
    return tuple(family)


def _fleiss(found: Patterns) -> Measure:
    """Fleiss' kappa over the items that all assessors graded."""
    assessors = len(found.grades)
    full = (found.grades != MISSING).all(axis=0)
    counts = (found.grades[:, None, :] == np.arange(found.width)[None, :, None]).sum(axis=0) * full
    equal = ((counts**2).sum(axis=0) - assessors * full) / max(assessors * (assessors - 1), 1)
    features = np.vstack([equal, counts]).astype(np.float64)

    def values(weights: Floats) -> Floats:
        sums = (weights @ features.T.astype(weights.dtype)).astype(np.float64)
        grades = sums[:, 1:].sum(axis=1)
        chance = (_ratio(sums[:, 1:], grades[:, None]) ** 2).sum(axis=1)
        return _ratio(_ratio(sums[:, 0], grades / assessors) - chance, 1 - chance)

    return values if assessors > 1 else lambda weights: np.full(len(weights), np.nan)


def _alphas(found: Patterns) -> Measure:
    """Krippendorff's alpha over the items with two grades and more. Values: nominal, ordinal, interval."""
    grades = np.unique(found.grades[found.grades != MISSING])
    counts = (found.grades[:, None, :] == grades[None, :, None]).sum(axis=0).astype(np.float64)
    counts *= counts.sum(axis=0) >= 2
    others = np.maximum(counts.sum(axis=0) - 1, 1)
    low, high = np.triu_indices(len(grades), 1)
    features = np.vstack([counts, *(counts[c] * counts[k] / others for c, k in zip(low, high, strict=True))])

    def values(weights: Floats) -> Floats:
        sums = (weights @ features.T.astype(weights.dtype)).astype(np.float64)
        margins, coincidences = sums[:, : len(grades)], sums[:, len(grades) :]
        # The ordinal distance of two grades is the distance of their middle ranks.
        ranks = margins.cumsum(axis=1) - margins / 2
        spans = (1.0, (ranks[:, high] - ranks[:, low]) ** 2, (grades[high] - grades[low]) ** 2.0)
        chance = margins[:, low] * margins[:, high]
        total = margins.sum(axis=1) - 1
        return np.stack(
            [1 - _ratio(total * (coincidences * span).sum(axis=1), (chance * span).sum(axis=1)) for span in spans],
            axis=1,
        )

    return values


def _ratio(above: Floats, below: Floats) -> Floats:
    """NaN where the denominator is zero, or only its rounding is left."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below > 1e-12, above / below, np.nan)


def _statistic(value: Number, low: Number, high: Number, n: int, none: str) -> Statistic:
    """Numbers to a Statistic; NaN becomes null. `none`: the reason when there is no item at all."""
    if not np.isfinite(value):
        return Statistic(None, None, None, n, ONE_GRADE if n else none)
    bounded = np.isfinite(low) and np.isfinite(high)
    return Statistic(float(value), float(low) if bounded else None, float(high) if bounded else None, n, None)
