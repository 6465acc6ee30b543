"""Measures by run and query from grades: arrays in, arrays out. Pure.

`grades` and `documents` are (runs, queries, k) as benchmark.report.graded_runs makes them; every
measure is (runs, queries). A query that a run lacks counts 0 in each. Means are over the queries.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmark.report.graded_runs import NONE, Floats, Grades, Ints, Version

Gain = Callable[[Floats], Floats]


def linear_gain(grades: Floats) -> Floats:
    """The grade itself, as trec_eval has it."""
    return grades


def exponential_gain(grades: Floats) -> Floats:
    """2^grade - 1 (DREAM J.1)."""
    return np.asarray(np.exp2(grades) - 1, dtype=np.float64)


def dcg_discounts(k: int) -> Floats:
    """1 / log2(rank + 1) for ranks 1 to k."""
    return 1 / np.log2(np.arange(2, k + 2, dtype=np.float64))


def largest_discounted_sum(counts: Ints, k: int | None) -> Floats:
    """The discounted sum of so many documents of gain 1 at the top, at most k; None: all."""
    longest = int(counts.max(initial=0)) if k is None else k
    # A sum of discounts for each possible number of documents, looked up by count.
    sums = np.concatenate([[0.0], np.cumsum(dcg_discounts(longest))])
    found: Floats = sums[np.minimum(counts, longest)]
    return found


def ideal_dcg(levels: Sequence[int], at_least: Sequence[Ints], k: int, gain: Gain) -> Floats:
    """The DCG of the best order, cut at k, from how many documents have each grade or a higher one.

    The sorted grades are layers that lie on each other: a layer for each step from one grade to the next.
    """
    # Gain in steps from grade to grade: each document counts once for each grade that it reaches, which needs no sort.
    steps = np.diff(gain(np.array([0, *levels], dtype=np.float64)))
    layers = [step * largest_discounted_sum(counts, k) for step, counts in zip(steps, at_least, strict=True)]
    return np.asarray(np.sum(layers, axis=0), dtype=np.float64)


@dataclass(frozen=True)
class Graded:
    """The documents that the runs returned, as one version of the qrels grades them."""

    documents: Ints
    grades: Grades
    version: Version
    relevant_from: int = 1

    @property
    def k(self) -> int:
        """The number of ranks that count."""
        return int(self.documents.shape[2])

    @property
    def returned(self) -> NDArray[np.bool_]:
        """Return at which ranks there is a document."""
        return np.asarray(self.documents != NONE, dtype=np.bool_)

    @property
    def relevant(self) -> NDArray[np.bool_]:
        """Return which of the returned documents are relevant, as booleans."""
        return np.asarray(self.grades >= self.relevant_from, dtype=np.bool_)

    @property
    def relevant_known(self) -> Ints:
        """Relevant documents of each query that the version knows."""
        return self.version.at_least(self.relevant_from)


def hit(found: Graded) -> Floats:
    """1 where one of the first k is relevant (DREAM J.1)."""
    return np.asarray(found.relevant.any(axis=2), dtype=np.float64)


def recall(found: Graded) -> Floats:
    """The share of the relevant documents that stand in the first k; 0 where there are none."""
    return divide_or_zero(found.relevant.sum(axis=2), found.relevant_known)


def judged_share(found: Graded) -> Floats:
    """The share of the returned documents, at most k, that somebody judged."""
    return divide_or_zero((found.returned & (found.grades != NONE)).sum(axis=2), found.returned.sum(axis=2))


def unjudged_share(found: Graded) -> Floats:
    """The share of the returned documents, at most k, that nobody judged."""
    return divide_or_zero((found.returned & (found.grades == NONE)).sum(axis=2), found.returned.sum(axis=2))


def ndcg(found: Graded, gain: Gain = linear_gain) -> Floats:
    """Return nDCG@k with the ideal cut at k. With linear gain it is trec_eval's ndcg_cut."""
    # Grades below 0 (not judged) gain nothing, as in trec_eval.
    got = gain(np.maximum(found.grades, 0).astype(np.float64)) @ dcg_discounts(found.k)
    version = found.version
    counts = [version.at_least(grade) for grade in version.levels]
    if not counts:
        return np.zeros_like(got)
    return divide_or_zero(got, ideal_dcg(version.levels, counts, found.k, gain))


def ndcg_exp(found: Graded) -> Floats:
    """Return nDCG@k with exponential gain (DREAM J.1)."""
    return ndcg(found, exponential_gain)


def ndcg_bridge(found: Graded) -> Floats:
    """Return nDCG@k as in the public BRIDGE code: binary, its ideal over all relevant documents, also beyond k."""
    return divide_or_zero(
        # No cut: the BRIDGE code divides by the ideal over all relevant documents.
        found.relevant.astype(np.float64) @ dcg_discounts(found.k),
        largest_discounted_sum(found.relevant_known, None),
    )


def hole_at_k(before: Graded, after: Graded) -> Floats:
    """Return Hole@k: the share of the first k that are newly found relevant (DREAM 4.2)."""
    is_hole = (before.grades == NONE) & after.relevant
    # Over k and not over what was returned: a short ranking has fewer places in which a hole can be (DREAM 4.2).
    return np.asarray(is_hole.sum(axis=2) / before.k, dtype=np.float64)


# Measures that each version has. Their order is that of tables.
BY_VERSION: dict[str, Callable[[Graded], Floats]] = {
    "unjudged": unjudged_share,
    "judged": judged_share,
    "hit": hit,
    "ndcg": ndcg,
    "ndcg_exp": ndcg_exp,
    "ndcg_bridge": ndcg_bridge,
    "recall": recall,
}
# Those that order systems: they get tests, ranks and letters.
RANKING = ("hit", "ndcg", "ndcg_exp", "ndcg_bridge", "recall")


def divide_or_zero(part: NDArray[np.generic], whole: NDArray[np.generic]) -> Floats:
    """Return part / whole, and 0 where the whole is 0."""
    # `where` leaves what it skips as `out` has it: 0, and no warning of a division by zero.
    wide = np.broadcast_to(whole, part.shape)
    found: Floats = np.divide(part, wide, out=np.zeros(part.shape), where=wide != 0)
    return found
