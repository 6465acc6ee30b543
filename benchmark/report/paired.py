"""Paired tests for many systems at once: one set of random signs for all of them. Pure.

The tests are those of benchmark.measures.compare: a randomisation test over queries, exact for few, and a bootstrap
interval. The sum of a difference under random signs is the difference of two sums, so 300 pairs of 25 systems cost 25
columns.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from benchmark.measures import EXACT, RESAMPLES, all_signs, exact_p
from benchmark.report.judged import Floats

BOOTSTRAP = 2_000
CHUNK = 500
"""Sign patterns that are held at once."""
NEAR = 1e-9
"""Sums nearer than this are equal: what adding in another order moves."""
LEVEL = 0.05
"""Holm-corrected p below it: systems differ."""


class Tests:
    """Tests of differences between columns of `values` (queries, columns)."""

    def __init__(self, values: Floats, seed: int) -> None:
        """Adds up every column under the same signs, all of them or RESAMPLES."""
        self.values = values
        self.exact = len(values) <= EXACT
        self.sums = np.concatenate([signs @ values for signs in _signs(len(values), seed)])

    def p(self, one: int, other: int) -> float:
        """Two-sided: how often random signs give a difference at least as far from 0."""
        differences = self.values[:, one] - self.values[:, other]
        differing = differences[np.abs(differences) > 1e-12]
        if not len(differing):
            return 1.0
        if len(differing) <= EXACT and not self.exact:
            return exact_p(differing)
        far = int((np.abs(self.sums[:, one] - self.sums[:, other]) >= abs(differing.sum()) - NEAR).sum())
        return far / len(self.sums) if self.exact else (1 + far) / (len(self.sums) + 1)


def _signs(queries: int, seed: int) -> Iterator[Floats]:
    if queries <= EXACT:
        yield all_signs(queries)
        return
    random = np.random.default_rng(seed)
    for start in range(0, RESAMPLES, CHUNK):
        rows = min(CHUNK, RESAMPLES - start)
        yield random.integers(0, 2, (rows, queries), dtype=np.int8).astype(np.float64) * 2 - 1


def intervals(differences: Floats, seed: int, sizes: Sequence[int] = ()) -> tuple[Floats, Floats]:
    """95% bootstrap intervals of the mean of each column of (queries, columns), over queries.

    `sizes`: how many rows each of several collections has; queries are drawn within their collection.
    """
    queries = len(differences)
    ends = np.cumsum([0, *(sizes or (queries,))]).tolist()
    random = np.random.default_rng(seed)
    means = []
    for _ in range(0, BOOTSTRAP, CHUNK):
        parts = [random.integers(low, high, (CHUNK, high - low)) for low, high in pairwise(ends)]
        drawn = np.concatenate(parts, axis=1) + np.arange(CHUNK)[:, None] * queries
        times = np.bincount(drawn.ravel(), minlength=CHUNK * queries).reshape(CHUNK, queries)
        means.append(times @ differences / queries)
    low, high = np.quantile(np.concatenate(means), [0.025, 0.975], axis=0)
    return low, high


def holm(p: Sequence[float]) -> list[float]:
    """Holm's step-down correction for as many tests as there are, in the same order."""
    corrected, highest = [0.0] * len(p), 0.0
    for place, at in enumerate(sorted(range(len(p)), key=lambda at: p[at])):
        highest = max(highest, min(1.0, (len(p) - place) * p[at]))
        corrected[at] = highest
    return corrected


def differing(tests: Tests, columns: Sequence[int]) -> "np.ndarray[tuple[int, int], np.dtype[np.bool_]]":
    """Which of these systems differ from which, after Holm's correction over all their pairs."""
    pairs = list(pairs_of(len(columns)))
    corrected = holm([tests.p(columns[one], columns[other]) for one, other in pairs])
    found = np.zeros((len(columns), len(columns)), dtype=np.bool_)
    for (one, other), p in zip(pairs, corrected, strict=True):
        found[one, other] = found[other, one] = p < LEVEL
    return found


def pairs_of(systems: int) -> Iterable[tuple[int, int]]:
    """Every two of them, the first before the second."""
    return ((one, other) for one in range(systems) for other in range(one + 1, systems))
