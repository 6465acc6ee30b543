"""Paired tests for many systems at once: one set of random signs for all of them. Pure.

A randomisation test over queries: how often would random signs of the queries' differences give a
sum at least as far from 0? The interval is the same test applied to every other difference: it contains
those that the test does not exclude, so that interval and p never contradict each other. The sum of
a difference under random signs is the difference of two sums, so 300 pairs of 25 systems cost 25
columns.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import ceil

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
RESAMPLES = 10_000
EXACT = 16  # Queries up to which all 2^n sign patterns are counted.
CHUNK = 500  # Sign patterns in memory at once.
NEAR = 1e-9  # Sums nearer than this are equal: what adding in another order moves.
LEVEL = 0.05  # A p below it tells two systems apart.


class Tests:
    """Tests of differences between columns of `values` (queries, columns)."""

    def __init__(self, values: Floats, seed: int, weights: Floats | None = None) -> None:
        """Add up every column under the same sign patterns: all patterns, or RESAMPLES drawn ones.

        `weights`: the weight of each query in the mean that the test is about, by which its values
        have been multiplied already; 1 by default.
        """
        self.values = values
        # Up to 16 queries half of the 2^16 patterns stand for all; beyond that patterns are drawn.
        self.is_exact = len(values) <= EXACT
        self.weight = float(len(values) if weights is None else weights.sum())
        # A last column of weights: intervals need the sum of signs of each pattern.
        signed = np.column_stack([values, np.ones(len(values)) if weights is None else weights])
        if self.is_exact:
            sums = all_signs(len(values)) @ signed
        else:
            # In chunks: 10,000 patterns of 10,000 queries at once would take 800 MB.
            random, sums = np.random.default_rng(seed), np.empty((RESAMPLES, signed.shape[1]))
            for start in range(0, RESAMPLES, CHUNK):
                chunk = sums[start : start + CHUNK]
                signs = random.integers(0, 2, (len(chunk), len(values)), dtype=np.int8).astype(np.float64) * 2 - 1
                chunk[:] = signs @ signed
        self.sums, self.weights = sums[:, :-1], sums[:, -1]

    def p(self, first: int, second: int) -> float:
        """Return the two-sided p: how often random signs give a difference as far from 0."""
        observed, randomised = self._difference(first, second)
        # Sums in another order differ by rounding: a pattern that repeats the observed sum must count.
        extreme_count = int((np.abs(randomised) >= abs(observed) - NEAR).sum())
        # With drawn patterns the observed one counts as one of them, so that p is never 0.
        return extreme_count / len(randomised) if self.is_exact else (1 + extreme_count) / (len(randomised) + 1)

    def interval(self, first: int, second: int, level: float) -> tuple[float, float]:
        """Return the lowest and highest mean difference d, from -1 to 1, whose p is at least `level`.

        The p of d is the share of signs s with |sum s (x - d)| >= |sum (x - d)|. For given signs
        that is true exactly between the two values of d that make both sides equal.
        """
        observed, randomised = self._difference(first, second)
        patterns = len(randomised)
        # So many patterns must be at least as far from 0 for p to reach the level.
        needed_count = ceil(level * patterns) if self.is_exact else ceil(level * (patterns + 1)) - 1
        # At a level below the least p that so many patterns can give, no difference can be excluded.
        if needed_count < 1:
            return -1.0, 1.0
        with np.errstate(divide="ignore", invalid="ignore"):
            less, more = self.weight - self.weights, self.weight + self.weights
            # For each pattern the difference d at which it stops being as far: the bound is an
            # order statistic of these.
            low = np.fmin((observed - NEAR - randomised) / less, (observed - NEAR + randomised) / more)
            high = np.fmax((observed + NEAR - randomised) / less, (observed + NEAR + randomised) / more)
        is_unbounded = self.weight - np.abs(self.weights) < NEAR  # no sign or every sign is turned: any d is as far
        low[is_unbounded], high[is_unbounded] = -np.inf, np.inf
        least = float(np.partition(low, needed_count - 1)[needed_count - 1])
        most = float(-np.partition(-high, needed_count - 1)[needed_count - 1])
        return _clamp_difference(least), _clamp_difference(most)

    def _difference(self, first: int, second: int) -> tuple[float, Floats]:
        """Return the observed sum of the differences, and the sum under each pattern of signs."""
        observed = float((self.values[:, first] - self.values[:, second]).sum())
        return observed, self.sums[:, first] - self.sums[:, second]


def _clamp_difference(bound: float) -> float:
    """Clamp a difference of two measures, each from 0 to 1, to -1 to 1."""
    return round(min(1.0, max(-1.0, bound)), 9) + 0.0  # -0.0 + 0.0 is 0.0


@lru_cache(maxsize=EXACT + 1)
def all_signs(queries: int) -> Floats:
    """(2^(queries - 1), queries) of 1 and -1; at most EXACT queries.

    The last sign is the same in all: flipping every sign leaves a sum as far from 0, so half the patterns suffice.
    """
    # Shifting by the last position gives 0 for every pattern, so the last sign never changes.
    bits = (np.arange(2 ** (queries - 1))[:, None] >> np.arange(queries)) & 1
    return (2 * bits - 1).astype(np.float64)


def holm_correction(p: Sequence[float]) -> list[float]:
    """Correct p values by Holm's step-down procedure, in the same order."""
    # The smallest p is corrected for all tests, the next one for one test less, and so on (Holm 1979).
    corrected, highest = [0.0] * len(p), 0.0
    for rank, index in enumerate(sorted(range(len(p)), key=lambda position: p[position])):
        # Monotone: a larger p is never corrected to a smaller one.
        highest = max(highest, min(1.0, (len(p) - rank) * p[index]))
        corrected[index] = highest
    return corrected


def holm_levels(p: Sequence[float]) -> list[float]:
    """Return the level of each test's interval: the one at which Holm's procedure tests its p, or stopped before it.

    An interval excludes 0 exactly where the corrected p is below LEVEL.
    """
    levels = [LEVEL] * len(p)
    final_level: float | None = None
    for rank, index in enumerate(sorted(range(len(p)), key=lambda position: p[position])):
        level = LEVEL / (len(p) - rank)
        # After the first test that fails, Holm's procedure rejects nothing more, so its level stays.
        if final_level is None and p[index] >= level:
            final_level = level
        levels[index] = level if final_level is None else final_level
    return levels
