"""Arithmetic of the proof's own figures: means over queries and shares, with their intervals. Pure."""

from collections.abc import Sequence
from typing import Any

import numpy as np

RESAMPLES = 10_000


def bootstrap_mean(values: Sequence[float], *, seed: int) -> dict[str, float]:
    """Return the mean of a value per query with its 95% percentile interval, by seeded resamples of the queries."""
    sample = np.asarray(values, dtype=float)
    draws = np.random.default_rng(seed).integers(0, len(sample), size=(RESAMPLES, len(sample)))
    low, high = np.quantile(sample[draws].mean(axis=1), [0.025, 0.975])
    return {"value": float(sample.mean()), "low": float(low), "high": float(high), "n": len(sample)}


def exact_share(right: int, total: int) -> dict[str, Any]:
    """Return a share with the exact 95% interval of Clopper and Pearson; without a value of nothing."""
    from scipy.stats import binomtest

    if not total:
        return {"value": None, "low": None, "high": None, "n": 0}
    interval = binomtest(right, total).proportion_ci(0.95, "exact")
    return {"value": right / total, "low": float(interval.low), "high": float(interval.high), "n": total}
