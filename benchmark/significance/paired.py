"""Paired tests for many systems at once: one set of random signs for all of them. Pure.

A randomisation test over queries: how often would random signs of the queries' differences give a
sum at least as far from 0? The interval is the same test asked of every other difference: it holds
those that the test does not exclude, so that interval and p never contradict each other. The sum of
a difference under random signs is the difference of two sums, so 300 pairs of 25 systems cost 25
columns.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from math import ceil

import numpy as np

from benchmark.report.graded_runs import Floats

RESAMPLES = 10_000
EXACT = 16  # Queries up to which all 2^n sign patterns are counted.
CHUNK = 500  # Sign patterns that are held at once.
NEAR = 1e-9  # Sums nearer than this are equal: what adding in another order moves.
LEVEL = 0.05  # A p below it tells two systems apart.


class Tests:
    """Tests of differences between columns of `values` (queries, columns)."""

    def __init__(self, values: Floats, seed: int, weights: Floats | None = None) -> None:
        """Add up every column under the same signs, all of them or RESAMPLES.

        `weights`: what each query counts in the mean that the test is about, where its values have
        been multiplied by it already; 1 unless given.
        """
        self.values = values
        # Up to 16 queries half of the 2^16 patterns stand for all; beyond that patterns are drawn.
        self.is_exact = len(values) <= EXACT
        self.weight = float(len(values) if weights is None else weights.sum())
        # A column of weights rides along: intervals need the sum of signs of each pattern.
        signed = np.column_stack([values, np.ones(len(values)) if weights is None else weights])
        found = np.concatenate([signs @ signed for signs in _random_signs(len(values), seed)])
        self.sums, self.weights = found[:, :-1], found[:, -1]

    def p(self, one: int, other: int) -> float:
        """Return the two-sided p: how often random signs give a difference as far from 0."""
        seen, turned = self._difference(one, other)
        # Sums in another order differ by rounding: a pattern that repeats what was seen must count.
        far = int((np.abs(turned) >= abs(seen) - NEAR).sum())
        # With drawn patterns what was seen counts as one of them, so that p is never 0.
        return far / len(turned) if self.is_exact else (1 + far) / (len(turned) + 1)

    def interval(self, one: int, other: int, level: float) -> tuple[float, float]:
        """The mean differences d that are not excluded: those whose p is at least `level`, from -1 to 1.

        Under the signs s, d is as far from what was seen as from what s gives, |sum s (x - d)| >=
        |sum (x - d)|, exactly between the two values of d that make both sides equal; the p of d is
        the share of such signs.
        """
        seen, turned = self._difference(one, other)
        patterns = len(turned)
        # At least so many patterns must be as far from 0 for p to reach the level.
        needed = ceil(level * patterns) if self.is_exact else ceil(level * (patterns + 1)) - 1
        # At a level below the least p that so many patterns can give, no difference can be excluded.
        if needed < 1:
            return -1.0, 1.0
        with np.errstate(divide="ignore", invalid="ignore"):
            less, more = self.weight - self.weights, self.weight + self.weights
            # For each pattern the difference d at which it stops being as far: the bound is an
            # order statistic of these.
            low = np.fmin((seen - NEAR - turned) / less, (seen - NEAR + turned) / more)
            high = np.fmax((seen + NEAR - turned) / less, (seen + NEAR + turned) / more)
        same = self.weight - np.abs(self.weights) < NEAR  # no sign or every sign is turned: any d is as far
        low[same], high[same] = -np.inf, np.inf
        least = float(np.partition(low, needed - 1)[needed - 1])
        most = float(-np.partition(-high, needed - 1)[needed - 1])
        return _clamp_difference(least), _clamp_difference(most)

    def _difference(self, one: int, other: int) -> tuple[float, Floats]:
        """The sum of the differences as it was seen, and under each pattern of signs."""
        seen = float((self.values[:, one] - self.values[:, other]).sum())
        return seen, self.sums[:, one] - self.sums[:, other]


def _clamp_difference(bound: float) -> float:
    """Measures are from 0 to 1, so no difference of two is farther from 0 than 1."""
    return round(min(1.0, max(-1.0, bound)), 9) + 0.0  # -0.0 + 0.0 is 0.0


def _random_signs(queries: int, seed: int) -> Iterator[Floats]:
    if queries <= EXACT:
        yield all_signs(queries)
        return
    # In chunks: 10,000 patterns of 10,000 queries at once would take 800 MB.
    random = np.random.default_rng(seed)
    for start in range(0, RESAMPLES, CHUNK):
        rows = min(CHUNK, RESAMPLES - start)
        yield random.integers(0, 2, (rows, queries), dtype=np.int8).astype(np.float64) * 2 - 1


@lru_cache(maxsize=EXACT + 1)
def all_signs(queries: int) -> Floats:
    """(2^(queries - 1), queries) of 1 and -1; at most EXACT queries.

    The last sign is the same in all: turning every sign round leaves a sum as far from 0, so half the patterns do.
    """
    # The shift by the last place gives 0 for every pattern, which keeps the last sign as it is.
    bits = (np.arange(2 ** (queries - 1))[:, None] >> np.arange(queries)) & 1
    return (2 * bits - 1).astype(np.float64)


def holm_correction(p: Sequence[float]) -> list[float]:
    """Correct p values by Holm's step-down procedure, in the same order."""
    # From the smallest p on: it is held to all tests, the next one to one test less, and so on (Holm 1979).
    corrected, highest = [0.0] * len(p), 0.0
    for place, at in enumerate(sorted(range(len(p)), key=lambda at: p[at])):
        # Monotone: a larger p is never corrected to a smaller one.
        highest = max(highest, min(1.0, (len(p) - place) * p[at]))
        corrected[at] = highest
    return corrected


def holm_levels(p: Sequence[float]) -> list[float]:
    """The level of each test's interval: the one at which Holm's procedure tests its p, or stopped before it.

    An interval leaves out 0 exactly where the corrected p is below LEVEL.
    """
    found = [LEVEL] * len(p)
    stopped: float | None = None
    for place, at in enumerate(sorted(range(len(p)), key=lambda at: p[at])):
        level = LEVEL / (len(p) - place)
        # From the first test that fails on, Holm's procedure rejects nothing more, so its level stays.
        if stopped is None and p[at] >= level:
            stopped = level
        found[at] = level if stopped is None else stopped
    return found


def significant_differences(tests: Tests, columns: Sequence[int]) -> "np.ndarray[tuple[int, int], np.dtype[np.bool_]]":
    """(systems, systems) which differ from which, after Holm's correction over all their pairs."""
    pairs = list(combinations(range(len(columns)), 2))
    corrected = holm_correction([tests.p(columns[one], columns[other]) for one, other in pairs])
    found = np.zeros((len(columns), len(columns)), dtype=np.bool_)
    for (one, other), p in zip(pairs, corrected, strict=True):
        found[one, other] = found[other, one] = p < LEVEL
    return found
