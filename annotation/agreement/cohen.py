"""Cohen's kappa, plain and weighted, and percent agreement for many pairs of assessors at once. Pure numpy."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotation.agreement.resampling import CELLS, MISSING, Floats, Grades

Places = NDArray[np.intp]


class Cohen(NamedTuple):
    """Values for resamples x assessor pairs, NaN where undefined. `n`: items that both graded."""

    n: Floats
    kappa: Floats
    linear: Floats
    quadratic: Floats
    percent: Floats


class Sums(NamedTuple):
    """Sums over items, resamples x assessor pairs each."""

    n: Floats
    observed: list[Floats]
    """Disagreement by each weighting: any, distance, its square."""
    mine: list[Floats]
    """Items of the n to which the first gave grade 1, 2, ...; the rest is grade 0."""
    theirs: list[Floats]


def cohen(weights: Floats, rows: Grades, pairs: Sequence[tuple[int, int]]) -> Cohen:
    """Cohen's family for each row of `weights` (resamples x patterns) and each pair of rows of grades.

    Distances of the weighted kinds are those of the grades themselves: 0 and 3 are three apart though nobody gave 1.
    """
    places = np.array(pairs, dtype=np.intp).reshape(-1, 2)
    width = max(int(rows.max(initial=0)) + 1, 2)
    hot = (rows[:, None, :] == np.arange(width)[None, :, None]).astype(weights.dtype)
    whole = (rows != MISSING).all(axis=1)[places].all(axis=1)
    block = max(1, CELLS // (2 * (width + 1) * max(rows.shape[1], 1)))
    result = np.empty((len(Cohen._fields), len(weights), len(places)), dtype=weights.dtype)
    for add, kind in ((_sums_of_whole, np.flatnonzero(whole)), (_sums, np.flatnonzero(~whole))):
        for at in range(0, len(kind), block):
            some = kind[at : at + block]
            result[:, :, some] = _formulas(add(weights, rows, hot, places[some, 0], places[some, 1]))
    return Cohen(*result)


def _sums(weights: Floats, rows: Grades, hot: Floats, left: Places, right: Places) -> Sums:
    """Only items that both graded enter, so each pair of assessors has margins of its own."""
    width, size = hot.shape[1], len(left)
    there = (rows != MISSING).astype(weights.dtype)
    both = there[left] * there[right]
    distances = _distances(rows, left, right, width, weights.dtype)
    features = [both, *(distance * both for distance in distances)]
    features += [hot[left, grade] * there[right] for grade in range(1, width)]
    features += [hot[right, grade] * there[left] for grade in range(1, width)]
    sums = weights @ np.concatenate(features).T
    n, *rest = (sums[:, place : place + size] for place in range(0, sums.shape[1], size))
    margins = rest[len(distances) :]
    return Sums(n, rest[: len(distances)], margins[: width - 1], margins[width - 1 :])


def _sums_of_whole(weights: Floats, rows: Grades, hot: Floats, left: Places, right: Places) -> Sums:
    """Assessors who graded everything: one margin each serves all their pairs, a quarter of the work."""
    width, size = hot.shape[1], len(left)
    observed = weights @ np.concatenate(_distances(rows, left, right, width, weights.dtype)).T
    margins = [weights @ hot[:, grade].T for grade in range(1, width)]
    n = np.repeat(weights.sum(axis=1, keepdims=True), size, axis=1)
    return Sums(
        n,
        [observed[:, place : place + size] for place in range(0, observed.shape[1], size)],
        [margin[:, left] for margin in margins],
        [margin[:, right] for margin in margins],
    )


def _distances(rows: Grades, left: Places, right: Places, width: int, dtype: np.dtype[np.floating]) -> list[Floats]:
    """How far grades are apart, by each weighting; with two grades all weightings are one."""
    apart = np.abs(rows[left] - rows[right]).astype(dtype)
    return [np.minimum(apart, 1), apart, apart**2] if width > 2 else [apart]


def _formulas(sums: Sums) -> Cohen:
    """Kappa = 1 - observed / expected disagreement, in each weighting."""
    expected = _expected(sums)
    with np.errstate(divide="ignore", invalid="ignore"):
        kappas = [np.where(e > 0, 1 - o / e, np.nan) for o, e in zip(sums.observed, expected, strict=True)]
        percent = np.where(sums.n > 0, 1 - sums.observed[0] / sums.n, np.nan)
    plain, linear, quadratic = kappas if len(kappas) == 3 else kappas * 3
    return Cohen(sums.n, plain, linear, quadratic, percent)


def _expected(sums: Sums) -> list[Floats]:
    """Disagreement by chance under each weighting."""
    a = [sums.n - sum(sums.mine), *sums.mine]
    b = [sums.n - sum(sums.theirs), *sums.theirs]
    totals = [np.zeros_like(sums.n) for _ in sums.observed]
    for i, j in ((i, j) for i in range(len(a)) for j in range(len(b)) if i != j):
        joint = a[i] * b[j]
        for kind, total in enumerate(totals):
            total += joint * float(abs(i - j) ** kind)
    with np.errstate(divide="ignore", invalid="ignore"):
        return [np.where(sums.n > 0, total / sums.n, 0) for total in totals]
