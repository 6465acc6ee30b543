"""Cohen's kappa, plain and weighted, and percent agreement for many pairs of assessors at once.

There are two ways to compute the same sums: products of whole rows where most assessors graded most
items, and sparse counts of the items that both graded where assessors have few items in common (956
people with 60 pairs each are 456,490 couples, few of whom have a common item).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotation.agreement.resampling import CELLS, MISSING, Floats, Grades

Places = NDArray[np.intp]
Overlaps = tuple[Places, Places, Places]  # For each item that two assessors graded: their rows, and its column.


class Cohen(NamedTuple):
    """Values (resamples x assessor pairs), NaN where undefined. `n`: items that both graded."""

    n: Floats
    kappa: Floats
    linear: Floats
    quadratic: Floats
    percent: Floats


class Sums(NamedTuple):
    """Sums over items, each resamples x assessor pairs."""

    n: Floats
    observed: list[Floats]  # Disagreement under each weighting: any, the distance, its square.
    left: list[Floats]  # Items that the left assessor graded 1, 2, ...; the rest of n has grade 0.
    right: list[Floats]


def cohen_kappas(weights: Floats, rows: Grades, pairs: Sequence[tuple[int, int]]) -> Cohen:
    """Compute the measures for each row of `weights` (resamples x patterns) and each pair of rows of grades.

    Weighted kappas use the distance of the grades' values: 0 and 3 are three apart even if no grade is 1.
    """
    places = np.array(pairs, dtype=np.intp).reshape(-1, 2)
    width = max(int(rows.max(initial=0)) + 1, 2)
    hot = (rows[:, None, :] == np.arange(width)[None, :, None]).astype(weights.dtype)
    # Sums of pairs in which both assessors graded all items are cheaper.
    whole = (rows != MISSING).all(axis=1)[places].all(axis=1)
    # Bounds the memory of the sums and the margins of a block.
    block = max(1, CELLS // (2 * (width + 1) * max(rows.shape[1], 1)))
    result = np.empty((len(Cohen._fields), len(weights), len(places)), dtype=weights.dtype)
    for add, kind in ((_sums_of_whole, np.flatnonzero(whole)), (_sums_of_overlap, np.flatnonzero(~whole))):
        for begin in range(0, len(kind), block):
            chunk = kind[begin : begin + block]
            result[:, :, chunk] = _compute_kappas(add(weights, rows, hot, places[chunk, 0], places[chunk, 1]))
    return Cohen(*result)


def _sums_of_overlap(weights: Floats, rows: Grades, hot: Floats, left: Places, right: Places) -> Sums:
    """Sum over the items that both graded, with separate margins for each pair of assessors."""
    width, size = hot.shape[1], len(left)
    is_graded = (rows != MISSING).astype(weights.dtype)
    both = is_graded[left] * is_graded[right]
    distances = _grade_distances(rows, left, right, width, weights.dtype)
    features = [both, *(distance * both for distance in distances)]
    features += [hot[left, grade] * is_graded[right] for grade in range(1, width)]
    features += [hot[right, grade] * is_graded[left] for grade in range(1, width)]
    sums = weights @ np.concatenate(features).T
    n, *rest = (sums[:, offset : offset + size] for offset in range(0, sums.shape[1], size))
    margins = rest[len(distances) :]
    return Sums(n, rest[: len(distances)], margins[: width - 1], margins[width - 1 :])


def _sums_of_whole(weights: Floats, rows: Grades, hot: Floats, left: Places, right: Places) -> Sums:
    """Sum for assessors who graded all items: each has the same margin in all pairs, which is a quarter of the work."""
    width, size = hot.shape[1], len(left)
    observed = weights @ np.concatenate(_grade_distances(rows, left, right, width, weights.dtype)).T
    margins = [weights @ hot[:, grade].T for grade in range(1, width)]
    n = np.repeat(weights.sum(axis=1, keepdims=True), size, axis=1)
    return Sums(
        n,
        [observed[:, offset : offset + size] for offset in range(0, observed.shape[1], size)],
        [margin[:, left] for margin in margins],
        [margin[:, right] for margin in margins],
    )


def _grade_distances(
    rows: Grades, left: Places, right: Places, width: int, dtype: np.dtype[np.floating]
) -> list[Floats]:
    """Return the distances of grades under each weighting; with two grades all weightings are the same."""
    apart = np.abs(rows[left] - rows[right]).astype(dtype)  # int16: grades are at most 100
    return [np.minimum(apart, 1), apart, apart**2] if width > 2 else [apart]


def _compute_kappas(sums: Sums) -> Cohen:
    """Compute kappa = 1 - observed / expected disagreement under each weighting."""
    left = [sums.n - sum(sums.left), *sums.left]
    right = [sums.n - sum(sums.right), *sums.right]
    totals = [np.zeros_like(sums.n) for _ in sums.observed]
    for i, j in ((i, j) for i in range(len(left)) for j in range(len(right)) if i != j):
        joint = left[i] * right[j]
        for power, total in enumerate(totals):
            total += joint * float(abs(i - j) ** power)
    with np.errstate(divide="ignore", invalid="ignore"):
        # The disagreement expected by chance under each weighting.
        expected = [np.where(sums.n > 0, total / sums.n, 0) for total in totals]
        kappas = [
            np.where(chance > 0, 1 - observed / chance, np.nan)
            for observed, chance in zip(sums.observed, expected, strict=True)
        ]
        percent = np.where(sums.n > 0, 1 - sums.observed[0] / sums.n, np.nan)
    plain, linear, quadratic = kappas if len(kappas) == 3 else kappas * 3
    return Cohen(sums.n, plain, linear, quadratic, percent)


class Sparse:
    """The measures from sparse counts of common items; the work is in proportion to their number."""

    def __init__(self, rows: Grades, pairs: NDArray[np.int64], met: Overlaps) -> None:
        """Count grades of `pairs`, sorted by (left, right); `met`: all their common items."""
        from scipy.sparse import csr_array

        self.width = max(int(rows.max(initial=0)) + 1, 2)
        left, right, item = met
        # One number for each pair, sorted as `pairs` are.
        keys = pairs[:, 0] * len(rows) + pairs[:, 1]
        couple = np.searchsorted(keys, left.astype(np.int64) * len(rows) + right)
        cell = rows[left, item].astype(np.int64) * self.width + rows[right, item]
        shape = (len(pairs) * self.width**2, rows.shape[1])
        counts = np.ones(len(couple), dtype=np.float32)
        self.cells = csr_array((counts, (couple * self.width**2 + cell, item)), shape=shape)

    def cohen(self, weights: Floats, chunk: slice) -> Cohen:
        """Return the result of `cohen_kappas` for the pairs of a slice."""
        # The rows are (couple, left grade, right grade), so a product with the weights gives all tables.
        width = self.width
        sums = self.cells[chunk.start * width**2 : chunk.stop * width**2].astype(weights.dtype) @ weights.T
        table = np.asarray(sums).reshape(-1, width, width, len(weights)).transpose(1, 2, 3, 0)
        observed = [
            sum(table[i, j] * float(abs(i - j) ** power) for i in range(width) for j in range(width) if i != j)
            for power in range(3 if width > 2 else 1)
        ]
        left = [table[grade].sum(axis=0) for grade in range(1, width)]
        right = [table[:, grade].sum(axis=0) for grade in range(1, width)]
        return _compute_kappas(Sums(table.sum(axis=(0, 1)), observed, left, right))
