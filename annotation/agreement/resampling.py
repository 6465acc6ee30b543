"""The bootstrap over items, in which items with equal grades by all assessors are one pattern. Pure numpy."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

MISSING = -1  # In a matrix of grades: the assessor did not grade the item.

RESAMPLES = 1_000  # For all intervals on pages, so that a figure has the same interval everywhere.
CELLS = 24_000_000  # The most numbers in an array (96 MB as float32).

Grades = NDArray[np.integer]
Floats = NDArray[np.floating]


@dataclass(frozen=True, slots=True)
class Patterns:
    """The distinct columns of a matrix of grades: `grades` (assessors x patterns) and the `counts` of their items."""

    grades: Grades
    counts: NDArray[np.int64]


def group_patterns(grades: NDArray[np.integer]) -> Patterns:
    """Group the equal columns of grades (assessors x items), without columns that have no grade."""
    matrix = np.asarray(grades, dtype=np.int16)  # Sorted faster than int64.
    has_grade = (matrix != MISSING).any(axis=0)
    matrix = matrix if has_grade.all() else matrix[:, has_grade]
    _, first, counts = np.unique(_column_codes(matrix), return_index=True, return_counts=True)
    return Patterns(matrix[:, first], counts.astype(np.int64))


def pattern_places(grades: NDArray[np.integer]) -> NDArray[np.intp]:
    """Return the index of each column's pattern; every column must have a grade."""
    _, pattern_index = np.unique(_column_codes(np.asarray(grades, dtype=np.int16)), return_inverse=True)
    result: NDArray[np.intp] = pattern_index.ravel()
    return result


def merge_counts(
    grade_counts: NDArray[np.int64], counts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Merge equal columns with at least two grades, in a sorted order; return them and their numbers of items."""
    double = grade_counts.sum(axis=0) >= 2
    grade_counts, counts = grade_counts[:, double], counts[double]
    # Without unused grades, which would change the order.
    codes = _column_codes(grade_counts[grade_counts.any(axis=1)].astype(np.int16))
    _, first, pattern_index = np.unique(codes, return_index=True, return_inverse=True)
    return grade_counts[:, first], np.bincount(pattern_index.ravel(), weights=counts, minlength=len(first)).astype(
        np.int64
    )


def _column_codes(matrix: Grades) -> NDArray[np.generic]:
    """Return a value for each column, equal for equal columns."""
    assessors, base = matrix.shape[0], int(matrix.max(initial=0)) + 2
    if base**assessors < 2**62:
        codes = np.zeros(matrix.shape[1], dtype=np.int64)
        for row in matrix:
            codes = codes * base + (row + 1)
        return codes
    # Else the bytes of the column as one value, which numpy can sort too.
    columns = np.ascontiguousarray(matrix.T.astype(np.int16))
    return columns.view(np.dtype((np.void, columns.dtype.itemsize * assessors))).ravel()


@dataclass(frozen=True, slots=True)
class Draws:
    """Iterates over the same resamples each time, in blocks of at most CELLS numbers; none for `number` 0."""

    counts: NDArray[np.int64]
    number: int
    seed: int
    # A single block is cached; several blocks are drawn again each time, which bounds the memory.
    kept: list[NDArray[np.float32]] = field(default_factory=list)

    def __iter__(self) -> Iterator[NDArray[np.float32]]:
        if self.kept or self.number * len(self.counts) > CELLS:
            yield from self.kept or draw_resamples(self.counts, self.number, self.seed)
        elif self.number:
            self.kept.extend(draw_resamples(self.counts, self.number, self.seed))
            yield from self.kept


def draw_resamples(counts: NDArray[np.int64], number: int, seed: int) -> Iterator[NDArray[np.float32]]:
    """Yield the patterns' weights in `number` samples of items with replacement, in chunks of resamples x patterns."""
    random = np.random.default_rng(seed)
    items, groups = int(counts.sum()), len(counts)
    # With many items in a pattern, drawing the counts is faster than drawing items.
    draws_counts = groups * 8 < items
    chunk = max(1, min(number, CELLS // max(groups, 1)))
    owner = np.repeat(np.arange(groups, dtype=np.int32), counts)
    for start in range(0, number, chunk):
        size = min(chunk, number - start)
        if draws_counts:
            yield random.multinomial(items, counts / items, size=size).astype(np.float32, order="F")
            continue
        weights = np.empty((size, groups), dtype=np.float32, order="F")  # Sparse counts read columns.
        for row in weights:
            drawn = random.integers(0, items, size=items, dtype=np.int32)
            row[:] = np.bincount(owner[drawn] if groups < items else drawn, minlength=groups)
        yield weights


def percentile_interval(samples: Floats) -> tuple[Floats, Floats]:
    """Return the 95% percentile interval along axis 0, over the resamples in which the value is defined."""
    # Undefined values are sorted to the end. numpy's nanquantile is several times slower.
    ordered = np.sort(samples, axis=0)
    defined = np.isfinite(ordered).sum(axis=0)
    last = np.maximum(defined - 1, 0)
    bounds = []
    for share in (0.025, 0.975):
        position = last * share
        below = np.floor(position).astype(np.intp)
        above = np.minimum(below + 1, last)
        low = np.take_along_axis(ordered, below[None], axis=0)[0]
        high = np.take_along_axis(ordered, above[None], axis=0)[0]
        # No interval if more than a tenth of the resamples are undefined: it would be too narrow.
        bounds.append(np.where(defined * 10 >= len(samples) * 9, low + (high - low) * (position - below), np.nan))
    return bounds[0], bounds[1]
