"""Measures by run and query from grades: arrays in, arrays out. Pure.

`grades` and `documents` are (runs, queries, k) arrays of benchmark.measures.graded_runs; every
measure is (runs, queries). A query that a run lacks counts 0. Means are over the queries.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmark.measures.graded_runs import NONE, Floats, Grades, Ints, Version

Gain = Callable[[Floats], Floats]


def linear_gain(grades: Floats) -> Floats:
    """Return the grade itself, as in trec_eval."""
    return grades


def exponential_gain(grades: Floats) -> Floats:
    """Return 2^grade - 1 (DREAM J.1)."""
    return np.asarray(np.exp2(grades) - 1, dtype=np.float64)


def dcg_discounts(k: int) -> Floats:
    """Return 1 / log2(rank + 1) for ranks 1 to k."""
    return 1 / np.log2(np.arange(2, k + 2, dtype=np.float64))


def largest_discounted_sum(counts: Ints, k: int | None) -> Floats:
    """Return the DCG of `counts` documents of gain 1 at the top, cut at k if not None."""
    longest = int(counts.max(initial=0)) if k is None else k
    # A sum of discounts for each possible number of documents, looked up by count.
    sums = np.concatenate([[0.0], np.cumsum(dcg_discounts(longest))])
    discounted: Floats = sums[np.minimum(counts, longest)]
    return discounted


def ideal_dcg(levels: Sequence[int], at_least: Sequence[Ints], k: int, gain: Gain) -> Floats:
    """Return the DCG of the best order, cut at k, from the numbers of documents with each grade or a higher one."""
    # The gain in steps from grade to grade: each document counts once for each grade that it
    # reaches, so that no sorting is needed.
    steps = np.diff(gain(np.array([0, *levels], dtype=np.float64)))
    layers = [step * largest_discounted_sum(counts, k) for step, counts in zip(steps, at_least, strict=True)]
    return np.asarray(np.sum(layers, axis=0), dtype=np.float64)


@dataclass(frozen=True)
class Graded:
    """The documents that the runs returned, with their grades in a version of the qrels."""

    documents: Ints
    grades: Grades
    version: Version
    relevant_from: int = 1

    @property
    def k(self) -> int:
        """Return the number of ranks that count."""
        return int(self.documents.shape[2])

    @property
    def returned(self) -> NDArray[np.bool_]:
        """Return which ranks have a document, as booleans."""
        return np.asarray(self.documents != NONE, dtype=np.bool_)

    @property
    def relevant(self) -> NDArray[np.bool_]:
        """Return which of the returned documents are relevant, as booleans."""
        return np.asarray(self.grades >= self.relevant_from, dtype=np.bool_)

    @property
    def relevant_known(self) -> Ints:
        """Count the relevant documents of each query in the version."""
        return self.version.at_least(self.relevant_from)


def hit(graded: Graded) -> Floats:
    """Return 1 where one of the first k is relevant, otherwise 0 (DREAM J.1)."""
    return np.asarray(graded.relevant.any(axis=2), dtype=np.float64)


def recall(graded: Graded) -> Floats:
    """Return the share of the relevant documents that are among the first k; 0 where there are none."""
    return divide_or_zero(graded.relevant.sum(axis=2), graded.relevant_known)


def judged_share(graded: Graded) -> Floats:
    """Return the share of the first k returned documents that are judged."""
    return divide_or_zero((graded.returned & (graded.grades != NONE)).sum(axis=2), graded.returned.sum(axis=2))


def unjudged_share(graded: Graded) -> Floats:
    """Return the share of the first k returned documents that are not judged."""
    return divide_or_zero((graded.returned & (graded.grades == NONE)).sum(axis=2), graded.returned.sum(axis=2))


def ndcg(graded: Graded, gain: Gain = linear_gain) -> Floats:
    """Return nDCG@k with the ideal cut at k. With linear gain it is trec_eval's ndcg_cut."""
    # Grades below 0 (not judged) gain nothing, as in trec_eval.
    dcg = gain(np.maximum(graded.grades, 0).astype(np.float64)) @ dcg_discounts(graded.k)
    version = graded.version
    counts = [version.at_least(grade) for grade in version.levels]
    if not counts:
        return np.zeros_like(dcg)
    return divide_or_zero(dcg, ideal_dcg(version.levels, counts, graded.k, gain))


def ndcg_exp(graded: Graded) -> Floats:
    """Return nDCG@k with exponential gain (DREAM J.1)."""
    return ndcg(graded, exponential_gain)


def ndcg_bridge(graded: Graded) -> Floats:
    """Return nDCG@k as in the public BRIDGE code: binary, with an ideal over all relevant documents, also beyond k."""
    return divide_or_zero(
        # No cut: the BRIDGE code divides by the ideal over all relevant documents.
        graded.relevant.astype(np.float64) @ dcg_discounts(graded.k),
        largest_discounted_sum(graded.relevant_known, None),
    )


def hole_at_k(before: Graded, after: Graded) -> Floats:
    """Return Hole@k: the share of the first k that are relevant and were not judged before (DREAM 4.2)."""
    is_hole = (before.grades == NONE) & after.relevant
    # Divided by k and not by the number returned: a short ranking has fewer ranks for holes (DREAM 4.2).
    return np.asarray(is_hole.sum(axis=2) / before.k, dtype=np.float64)


# Measures by a single version, in the order of tables.
BY_VERSION: dict[str, Callable[[Graded], Floats]] = {
    "unjudged": unjudged_share,
    "judged": judged_share,
    "hit": hit,
    "ndcg": ndcg,
    "ndcg_exp": ndcg_exp,
    "ndcg_bridge": ndcg_bridge,
    "recall": recall,
}
# Measures that rank systems: they have tests, ranks and letters.
RANKING = ("hit", "ndcg", "ndcg_exp", "ndcg_bridge", "recall")


def divide_or_zero(part: NDArray[np.generic], whole: NDArray[np.generic]) -> Floats:
    """Return part / whole, and 0 where the whole is 0."""
    # `where` skips the zeros without a warning and leaves the 0 of `out`.
    denominators = np.broadcast_to(whole, part.shape)
    ratios: Floats = np.divide(part, denominators, out=np.zeros(part.shape), where=denominators != 0)
    return ratios
