"""A reranker's scores with BM25's over the same candidates: normalise, weigh, add (ERank, appendix G). Pure.

Three ways that the literature on BRIGHT uses, each per query: min-max with 0.1 of BM25 and 0.9 of
the reranker (Rank-R1), z-scores with 0.2 and 0.8 (ERank), and 100 times the reranker's score plus
BM25's as it is (JudgeRank). The candidates are those of the reranked run, each with its own BM25
score; a reranker's score is from 0 to 1, so that margins (log odds) go through the sigmoid first.
Scores that are all equal say nothing about the order and become 0.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

Scores = npt.NDArray[np.float64]


def minmax_scale(scores: Scores) -> Scores:
    """Scale scores from 0, the lowest, to 1, the highest; all are 0 where they are equal."""
    span = float(np.ptp(scores)) if len(scores) else 0.0
    return (scores - scores.min()) / span if span else np.zeros_like(scores)


def zscore(scores: Scores) -> Scores:
    """Scale scores to mean 0 and (population) deviation 1; all 0 where they are equal."""
    # By the range first: the deviation of equal floats may come out above 0, and would blow up their rounding.
    spread = float(scores.std()) if len(scores) and np.ptp(scores) else 0.0
    return (scores - scores.mean()) / spread if spread else np.zeros_like(scores)


def sigmoid(margins: Scores) -> Scores:
    """Turn margins into shares, without overflow."""
    found: Scores = 0.5 * (1 + np.tanh(margins / 2))
    return found


NO_GRADE = -1.0
"""An ERank run's value for an answer without a grade: below every grade x probability."""


def impute_ungraded(scores: Scores) -> Scores:
    """Give answers without a grade the lowest score of their query: no other query, and no scale, depends on them."""
    graded = scores[scores != NO_GRADE]
    lowest = graded.min() if len(graded) else 0.0
    return np.where(scores == NO_GRADE, lowest, scores)


METHODS: dict[str, Callable[[Scores], Scores]] = {"minmax": minmax_scale, "zscore": zscore, "sum": np.asarray}
# Of BM25 and of the reranker, in this order.
WEIGHTS = {"minmax": (0.1, 0.9), "zscore": (0.2, 0.8), "sum": (1.0, 100.0)}


def combine_scores(bm25: Scores, scores: Scores, method: str, weights: Sequence[float] | None = None) -> Scores:
    """The score of each candidate of a query, from BM25's and the reranker's, in order."""
    of_bm25, of_reranker = weights or WEIGHTS[method]
    normal = METHODS[method]
    return of_bm25 * normal(bm25) + of_reranker * normal(scores)
