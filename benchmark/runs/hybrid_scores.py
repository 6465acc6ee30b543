"""Combining a reranker's scores with BM25's over the same candidates: normalise, weigh, add (ERank, appendix G). Pure.

Three methods from the literature on BRIGHT, each per query: min-max with 0.1 of BM25 and 0.9 of the
reranker (Rank-R1), z-scores with 0.2 and 0.8 (ERank), and 100 times the reranker's score plus
BM25's unchanged (JudgeRank). The candidates are those of the reranked run, each with its own BM25
score. A reranker's score is from 0 to 1, so the sigmoid is applied to margins (log odds) first.
Scores that are all equal say nothing about the order and become 0.

First-stage runs, whose candidates differ, are fused over their union by ranks: `fuse_ranks`.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

Scores = npt.NDArray[np.float64]


def minmax_scale(scores: Scores) -> Scores:
    """Scale scores from 0, the lowest, to 1, the highest; all are 0 where they are equal."""
    span = float(np.ptp(scores)) if len(scores) else 0.0
    return (scores - scores.min()) / span if span else np.zeros_like(scores)


def zscore(scores: Scores) -> Scores:
    """Scale scores to mean 0 and (population) standard deviation 1; all are 0 where they are equal."""
    # The range is tested because the deviation of equal floats may be slightly above 0, which would magnify rounding.
    spread = float(scores.std()) if len(scores) and np.ptp(scores) else 0.0
    return (scores - scores.mean()) / spread if spread else np.zeros_like(scores)


def sigmoid(margins: Scores) -> Scores:
    """Turn margins into probabilities, without overflow."""
    probabilities: Scores = 0.5 * (1 + np.tanh(margins / 2))
    return probabilities


NO_GRADE = -1.0
"""The score in an ERank run of an answer without a grade: below every grade x probability."""


def impute_ungraded(scores: Scores) -> Scores:
    """Give answers without a grade the lowest score of their query."""
    graded = scores[scores != NO_GRADE]
    lowest = graded.min() if len(graded) else 0.0
    return np.where(scores == NO_GRADE, lowest, scores)


METHODS: dict[str, Callable[[Scores], Scores]] = {"minmax": minmax_scale, "zscore": zscore, "sum": np.asarray}
# Weights of BM25 and of the reranker.
WEIGHTS = {"minmax": (0.1, 0.9), "zscore": (0.2, 0.8), "sum": (1.0, 100.0)}


def combine_scores(bm25: Scores, scores: Scores, method: str, weights: Sequence[float] | None = None) -> Scores:
    """Return the score of each candidate of a query, from BM25's and the reranker's in the same order."""
    bm25_weight, reranker_weight = weights or WEIGHTS[method]
    normalise = METHODS[method]
    return bm25_weight * normalise(bm25) + reranker_weight * normalise(scores)


RRF = "rrf"
RRF_K = 60  # Cormack, Clarke and Büttcher, SIGIR 2009.


def fuse_ranks(rankings: Iterable[Iterable[int]], k: int = RRF_K) -> dict[int, float]:
    """Return the score of each document of any ranking: the sum of 1 / (k + rank), ranks from 1 (RRF)."""
    scores: dict[int, float] = defaultdict(float)
    for ranking in rankings:
        for rank, document in enumerate(ranking, 1):
            scores[document] += 1 / (k + rank)
    return dict(scores)
