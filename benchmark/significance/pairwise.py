"""Pairwise comparisons of a leaderboard's systems, and the interval of each mean. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from benchmark.significance.paired import LEVEL, Floats, Tests, holm_correction, holm_levels

RESAMPLES = 2_000  # Of the queries, for intervals of means.
CHUNK = 250  # Resamples in memory at once.


@dataclass(frozen=True, slots=True)
class QueryMean:
    """A mean over `n` queries with its 95% interval; None where they were not computed."""

    value: float | None
    low: float | None
    high: float | None
    n: int


def compare_pairs(
    values: Mapping[str, Floats], seed: int, weights: Floats | None = None
) -> dict[str, list[list[float]]]:
    """Return by measure, for each pair of systems, p, p corrected by Holm, and the interval at Holm's level.

    `values`: (systems, queries) by measure. The interval is that of the first system's mean minus the second's.
    `weights`: (queries,) on average 1, by which the values have been multiplied already (query_weights).
    """
    comparisons: dict[str, list[list[float]]] = {}
    # All measures share their random signs, so that more of them cost no more draws.
    tests = Tests(np.concatenate([matrix.T for matrix in values.values()], axis=1), seed, weights)
    for index, (key, matrix) in enumerate(values.items()):
        first = index * len(matrix)
        pairs = [(first + a, first + b) for a, b in combinations(range(len(matrix)), 2)]
        p = [tests.p(*pair) for pair in pairs]
        spans = [tests.interval(*pair, level) for pair, level in zip(pairs, holm_levels(p), strict=True)]
        comparisons[key] = [list(row) for row in zip(p, holm_correction(p), *zip(*spans, strict=True), strict=True)]
    return comparisons


def mean_intervals(
    values: Mapping[str, Floats], seed: int, weights: Floats | None = None
) -> dict[str, list[tuple[float, float]]]:
    """Return by measure each system's 95% interval of its mean: percentiles over bootstrap samples of the queries.

    `weights`: as for `compare_pairs`; a sample's mean is then its own weighted one.
    """
    flat = np.concatenate(list(values.values()))
    queries, random = flat.shape[1], np.random.default_rng(seed)
    shares = np.full(queries, 1 / queries)
    query_weights = np.ones(queries) if weights is None else weights
    # A bootstrap sample is a vector of counts, so all systems' means are one matrix product.
    samples = (random.multinomial(queries, shares, CHUNK).T for _ in range(RESAMPLES // CHUNK))
    means = np.concatenate([flat @ sample / (query_weights @ sample) for sample in samples], axis=1)
    low, high = np.quantile(means, (LEVEL / 2, 1 - LEVEL / 2), axis=1)
    bounds, size = list(zip(low.tolist(), high.tolist(), strict=True)), len(flat) // len(values)
    return {key: bounds[index * size : (index + 1) * size] for index, key in enumerate(values)}
