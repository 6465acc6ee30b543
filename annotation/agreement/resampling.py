"""The bootstrap by item, made cheap: items graded alike by everybody are one pattern with a count. Pure numpy."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

MISSING = -1  # Stands in a matrix of grades where an assessor did not grade an item.

RESAMPLES = 1_000  # Behind every interval that a page shows: one figure has one interval everywhere.
CELLS = 24_000_000  # Numbers in the largest array that is held at a time (float32: 96 MB).

Grades = NDArray[np.integer]
Floats = NDArray[np.floating]


@dataclass(frozen=True, slots=True)
class Patterns:
    """Columns of a matrix of grades, each once. `grades`: assessors x patterns; `counts`: items of each pattern."""

    grades: Grades
    counts: NDArray[np.int64]


def group_patterns(grades: NDArray[np.integer]) -> Patterns:
    """Group equal columns of assessors x items; columns without any grade are left out."""
    matrix = np.asarray(grades, dtype=np.int16)  # sorts faster than int64
    there = (matrix != MISSING).any(axis=0)
    matrix = matrix if there.all() else matrix[:, there]
    _, first, counts = np.unique(_column_codes(matrix), return_index=True, return_counts=True)
    return Patterns(matrix[:, first], counts.astype(np.int64))


def pattern_places(grades: NDArray[np.integer]) -> NDArray[np.intp]:
    """Return for each column of grades the place of its pattern; every column must have a grade."""
    _, place = np.unique(_column_codes(np.asarray(grades, dtype=np.int16)), return_inverse=True)
    result: NDArray[np.intp] = place.ravel()
    return result


def merge_counts(given: NDArray[np.int64], counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Merge equal columns with two grades and more, in a neutral order; return their items."""
    double = given.sum(axis=0) >= 2
    given, counts = given[:, double], counts[double]
    # Grades that nobody gave would change the order.
    codes = _column_codes(given[given.any(axis=1)].astype(np.int16))
    _, first, place = np.unique(codes, return_index=True, return_inverse=True)
    return given[:, first], np.bincount(place.ravel(), weights=counts, minlength=len(first)).astype(np.int64)


def _column_codes(matrix: Grades) -> NDArray[np.generic]:
    """Return one value for each column, equal where columns are."""
    assessors, base = matrix.shape[0], int(matrix.max(initial=0)) + 2
    if base**assessors < 2**62:
        codes = np.zeros(matrix.shape[1], dtype=np.int64)
        for row in matrix:
            codes = codes * base + (row + 1)
        return codes
    # Else the column's bytes as one opaque value, which numpy can sort as well.
    columns = np.ascontiguousarray(matrix.T.astype(np.int16))
    return columns.view(np.dtype((np.void, columns.dtype.itemsize * assessors))).ravel()


@dataclass(frozen=True, slots=True)
class Draws:
    """The same resamples each time they are walked through, in blocks of at most CELLS numbers. `number` 0: none."""

    counts: NDArray[np.int64]
    number: int
    seed: int
    # A single block is drawn once; more are drawn anew each time, so that memory is bounded.
    kept: list[NDArray[np.float32]] = field(default_factory=list)

    def __iter__(self) -> Iterator[NDArray[np.float32]]:
        if self.kept or self.number * len(self.counts) > CELLS:
            yield from self.kept or draw_resamples(self.counts, self.number, self.seed)
        elif self.number:
            self.kept.extend(draw_resamples(self.counts, self.number, self.seed))
            yield from self.kept


def draw_resamples(counts: NDArray[np.int64], number: int, seed: int) -> Iterator[NDArray[np.float32]]:
    """Yield weights of the patterns in `number` samples of items with replacement, in chunks of them x patterns."""
    random = np.random.default_rng(seed)
    items, groups = int(counts.sum()), len(counts)
    # With many items to a pattern, drawing the counts directly is faster than drawing items.
    grouped = groups * 8 < items
    chunk = max(1, min(number, CELLS // max(groups, 1)))
    owner = np.repeat(np.arange(groups, dtype=np.int32), counts)
    for start in range(0, number, chunk):
        size = min(chunk, number - start)
        if grouped:
            yield random.multinomial(items, counts / items, size=size).astype(np.float32, order="F")
            continue
        weights = np.empty((size, groups), dtype=np.float32, order="F")  # sparse counts take it column by column
        for row in weights:
            drawn = random.integers(0, items, size=items, dtype=np.int32)
            row[:] = np.bincount(owner[drawn] if groups < items else drawn, minlength=groups)
        yield weights


def percentile_interval(samples: Floats) -> tuple[Floats, Floats]:
    """Return the 95% percentile interval down axis 0, over resamples where the value is defined."""
    # Undefined values are sorted to the end. numpy's nanquantile gives the same, and takes several times as long.
    ordered = np.sort(samples, axis=0)
    defined = np.isfinite(ordered).sum(axis=0)
    last = np.maximum(defined - 1, 0)
    bounds = []
    for share in (0.025, 0.975):
        place = last * share
        below = np.floor(place).astype(np.intp)
        above = np.minimum(below + 1, last)
        low = np.take_along_axis(ordered, below[None], axis=0)[0]
        high = np.take_along_axis(ordered, above[None], axis=0)[0]
        # Where it is undefined in more than one resample of ten, an interval over the rest would flatter.
        bounds.append(np.where(defined * 10 >= len(samples) * 9, low + (high - low) * (place - below), np.nan))
    return bounds[0], bounds[1]
