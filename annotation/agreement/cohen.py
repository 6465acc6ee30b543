"""Cohen's kappa, plain and weighted, and percent agreement for many pairs of assessors at once.

Two ways to the same sums: products of whole rows where most assessors graded most items, and sparse
counts of the items that two both graded where few did (956 people with 60 pairs each have 456,490
couples, and few of them ever met).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotation.agreement.resampling import CELLS, MISSING, Floats, Grades

Places = NDArray[np.intp]
Met = tuple[Places, Places, Places]  # Every meeting of two assessors on an item: their rows, and its column.


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
    observed: list[Floats]  # Disagreement by each weighting: any, distance, its square.
    mine: list[Floats]  # Items of the n to which the first gave grade 1, 2, ...; the rest is grade 0.
    theirs: list[Floats]


def cohen_kappas(weights: Floats, rows: Grades, pairs: Sequence[tuple[int, int]]) -> Cohen:
    """Cohen's family for each row of `weights` (resamples x patterns) and each pair of rows of grades.

    Distances of the weighted kinds are those of the grades themselves: 0 and 3 are three apart though nobody gave 1.
    """
    places = np.array(pairs, dtype=np.intp).reshape(-1, 2)
    width = max(int(rows.max(initial=0)) + 1, 2)
    hot = (rows[:, None, :] == np.arange(width)[None, :, None]).astype(weights.dtype)
    # Whether both of a couple graded everything: their sums are cheaper then.
    whole = (rows != MISSING).all(axis=1)[places].all(axis=1)
    # Two sums and the margins of both stand in memory at a time.
    block = max(1, CELLS // (2 * (width + 1) * max(rows.shape[1], 1)))
    result = np.empty((len(Cohen._fields), len(weights), len(places)), dtype=weights.dtype)
    for add, kind in ((_sums_of_whole, np.flatnonzero(whole)), (_sums_of_overlap, np.flatnonzero(~whole))):
        for at in range(0, len(kind), block):
            some = kind[at : at + block]
            result[:, :, some] = _compute_kappas(add(weights, rows, hot, places[some, 0], places[some, 1]))
    return Cohen(*result)


def _sums_of_overlap(weights: Floats, rows: Grades, hot: Floats, left: Places, right: Places) -> Sums:
    """Sum the items that both graded, so each pair of assessors has margins of its own."""
    width, size = hot.shape[1], len(left)
    there = (rows != MISSING).astype(weights.dtype)
    both = there[left] * there[right]
    distances = _grade_distances(rows, left, right, width, weights.dtype)
    features = [both, *(distance * both for distance in distances)]
    features += [hot[left, grade] * there[right] for grade in range(1, width)]
    features += [hot[right, grade] * there[left] for grade in range(1, width)]
    sums = weights @ np.concatenate(features).T
    n, *rest = (sums[:, place : place + size] for place in range(0, sums.shape[1], size))
    margins = rest[len(distances) :]
    return Sums(n, rest[: len(distances)], margins[: width - 1], margins[width - 1 :])


def _sums_of_whole(weights: Floats, rows: Grades, hot: Floats, left: Places, right: Places) -> Sums:
    """Sum for assessors who graded everything: one margin each serves all their pairs, a quarter of the work."""
    width, size = hot.shape[1], len(left)
    observed = weights @ np.concatenate(_grade_distances(rows, left, right, width, weights.dtype)).T
    margins = [weights @ hot[:, grade].T for grade in range(1, width)]
    n = np.repeat(weights.sum(axis=1, keepdims=True), size, axis=1)
    return Sums(
        n,
        [observed[:, place : place + size] for place in range(0, observed.shape[1], size)],
        [margin[:, left] for margin in margins],
        [margin[:, right] for margin in margins],
    )


def _grade_distances(
    rows: Grades, left: Places, right: Places, width: int, dtype: np.dtype[np.floating]
) -> list[Floats]:
    """Return how far grades are apart, by each weighting; with two grades all weightings agree."""
    apart = np.abs(rows[left] - rows[right]).astype(dtype)  # int16: grades are at most 100
    return [np.minimum(apart, 1), apart, apart**2] if width > 2 else [apart]


def _compute_kappas(sums: Sums) -> Cohen:
    """Compute kappa = 1 - observed / expected disagreement, in each weighting."""
    expected = _expected_disagreement(sums)
    with np.errstate(divide="ignore", invalid="ignore"):
        kappas = [np.where(e > 0, 1 - o / e, np.nan) for o, e in zip(sums.observed, expected, strict=True)]
        percent = np.where(sums.n > 0, 1 - sums.observed[0] / sums.n, np.nan)
    plain, linear, quadratic = kappas if len(kappas) == 3 else kappas * 3
    return Cohen(sums.n, plain, linear, quadratic, percent)


def _expected_disagreement(sums: Sums) -> list[Floats]:
    """Return the disagreement by chance under each weighting."""
    a = [sums.n - sum(sums.mine), *sums.mine]
    b = [sums.n - sum(sums.theirs), *sums.theirs]
    totals = [np.zeros_like(sums.n) for _ in sums.observed]
    for i, j in ((i, j) for i in range(len(a)) for j in range(len(b)) if i != j):
        joint = a[i] * b[j]
        for kind, total in enumerate(totals):
            total += joint * float(abs(i - j) ** kind)
    with np.errstate(divide="ignore", invalid="ignore"):
        return [np.where(sums.n > 0, total / sums.n, 0) for total in totals]


def find_overlaps(grades: Grades) -> Met:
    """Find where two assessors graded the same item; the first is always the smaller row."""
    item, row = (found.astype(np.int32) for found in np.nonzero((grades != MISSING).T))
    parts = [(row[:0], row[:0], item[:0])]
    # Grades stand item by item, so those of one item that are `step` places apart are a meeting.
    most = int(np.bincount(item, minlength=1).max(initial=0))
    for step in range(1, most):
        same = item[step:] == item[:-step]
        parts.append((row[:-step][same], row[step:][same], item[:-step][same]))
    left, right, where = (np.concatenate(column) for column in zip(*parts, strict=True))
    return left, right, where


class Sparse:
    """Cohen's family from the items on which two met alone: work in proportion to the meetings."""

    def __init__(self, rows: Grades, pairs: NDArray[np.int64], met: Met) -> None:
        """`pairs`: sorted by (left, right), each of which is in `met` or has no item in common."""
        from scipy.sparse import csr_array

        self.width = max(int(rows.max(initial=0)) + 1, 2)
        left, right, item = met
        # One number for a couple: left row times rows plus right row, sorted as `pairs` is.
        keys = pairs[:, 0] * len(rows) + pairs[:, 1]
        place = np.searchsorted(keys, left.astype(np.int64) * len(rows) + right)
        cell = rows[left, item].astype(np.int64) * self.width + rows[right, item]
        shape = (len(pairs) * self.width**2, rows.shape[1])
        ones = np.ones(len(place), dtype=np.float32)
        self.cells = csr_array((ones, (place * self.width**2 + cell, item)), shape=shape)

    def cohen(self, weights: Floats, some: slice) -> Cohen:
        """Return what `cohen_kappas` gives for the pairs of the slice."""
        # Rows are (couple, left grade, right grade): a product with the weights gives all tables.
        width = self.width
        sums = self.cells[some.start * width**2 : some.stop * width**2].astype(weights.dtype) @ weights.T
        table = np.asarray(sums).reshape(-1, width, width, len(weights)).transpose(1, 2, 3, 0)
        apart = range(1, 4 if width > 2 else 2)
        observed = [
            sum(table[i, j] * float(abs(i - j) ** (power - 1)) for i in range(width) for j in range(width) if i != j)
            for power in apart
        ]
        mine = [table[grade].sum(axis=0) for grade in range(1, width)]
        theirs = [table[:, grade].sum(axis=0) for grade in range(1, width)]
        return _compute_kappas(Sums(table.sum(axis=(0, 1)), observed, mine, theirs))
