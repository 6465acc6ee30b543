"""One ranking of a query out of several: normalise each system's scores, weigh, add (ERank, appendix G). Pure.

Three ways that the literature on BRIGHT uses, each per query: min-max with 0.1 of BM25 and 0.9 of the other system
(Rank-R1), z-scores with 0.2 and 0.8 (ERank), and 100 times the other's score plus BM25's as it is (JudgeRank).

What the papers leave open: a document that one system did not return counts as that system's lowest score for the
query, because it would have come below it; scores that are all equal say nothing about the order, so they become 0; a
system that has nothing for a query adds nothing to any document, and the others decide.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

Keys = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]
Part = tuple[Keys, Scores]
"""What one system returned: documents and their scores."""


def minmax(scores: Scores) -> Scores:
    """From 0, the lowest, to 1, the highest; all 0 where they are equal."""
    span = float(np.ptp(scores)) if len(scores) else 0.0
    return (scores - scores.min()) / span if span else np.zeros_like(scores)


def zscore(scores: Scores) -> Scores:
    """Mean 0 and standard deviation 1 (of the population, not of a sample); all 0 where they are equal."""
    spread = float(scores.std()) if len(scores) and np.ptp(scores) else 0.0
    return (scores - scores.mean()) / spread if spread else np.zeros_like(scores)


def plain(scores: Scores) -> Scores:
    """As they are."""
    return scores


METHODS: dict[str, Callable[[Scores], Scores]] = {"minmax": minmax, "zscore": zscore, "sum": plain}
WEIGHTS = {"minmax": (0.1, 0.9), "zscore": (0.2, 0.8), "sum": (1.0, 100.0)}
"""Of BM25 and of the other system, in this order."""


def combine(parts: Sequence[Part], weights: Sequence[float], method: str) -> Part:
    """Every document that a system returned, ascending by key, with the weighted sum of its normalised scores."""
    if not any(len(documents) for documents, _scores in parts):
        return np.empty(0, dtype=np.int64), np.empty(0)
    everything = np.unique(np.concatenate([documents for documents, _scores in parts]))
    total = np.zeros(len(everything))
    for (documents, scores), weight in zip(parts, weights, strict=True):
        if not len(documents):
            continue
        normal = METHODS[method](scores)
        filled = np.full(len(everything), normal.min())
        filled[np.searchsorted(everything, documents)] = normal
        total += weight * filled
    return everything, total
