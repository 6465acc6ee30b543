"""Weights of queries in a mean: how often each of them was asked. Pure."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def weights_by_count(counts: Sequence[float | None]) -> NDArray[np.float64]:
    """Return (queries,) weights in proportion to the counts, on average 1; equal counts give exactly 1 each.

    Values times these weights have the weighted mean as their plain mean, which is what `Tests`, `compare_pairs` and
    `mean_intervals` expect. A query without a count (None) counts as asked once.
    """
    asked_times = np.array([1.0 if count is None else count for count in counts], dtype=np.float64)
    # By the largest first: a share of exactly 1 each for equal counts, whatever they are.
    shares = asked_times / asked_times.max(initial=0.0)
    return np.asarray(shares * len(shares) / shares.sum(), dtype=np.float64)


def effective_queries(weights: NDArray[np.float64]) -> float:
    """Return how many equally weighted queries are as informative: (sum w)^2 / sum w^2 (Kish 1965, Survey Sampling)."""
    return float(weights.sum() ** 2 / (weights**2).sum())
