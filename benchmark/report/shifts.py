"""Ranks of systems before and after, and how far two orders agree. Pure."""

from collections.abc import Sequence

import numpy as np

from benchmark.report.graded_runs import Floats

SAME = 1e-12  # Means nearer than this are one place.


def rank_means(means: Sequence[float]) -> list[int]:
    """1 for the highest; equal means share the best of their places."""
    values = np.asarray(means, dtype=np.float64)
    return [1 + int((values > value + SAME).sum()) for value in values]


def order_systems(means: Sequence[float], names: Sequence[str]) -> list[int]:
    """Places of the systems, best first; equals by name."""
    return sorted(range(len(means)), key=lambda one: (rank_means(means)[one], names[one]))


def _pair_signs(means: Sequence[float]) -> Floats:
    """For each two systems: 1 the first is better, -1 the second, 0 neither."""
    values = np.asarray(means, dtype=np.float64)
    differences = values[:, None] - values[None, :]
    signs = np.where(np.abs(differences) <= SAME, 0, np.sign(differences))
    return np.asarray(signs[np.triu_indices(len(values), 1)], dtype=np.float64)


def kendall_tau(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Kendall's tau-b of two lists of means; None where one of them orders nothing."""
    first, second = _pair_signs(one), _pair_signs(other)
    room = np.sqrt((first**2).sum() * (second**2).sum())
    return float((first * second).sum() / room) if room else None


def count_swapped(one: Sequence[float], other: Sequence[float]) -> int:
    """Pairs of systems of which the one that was better is now the worse."""
    return int((_pair_signs(one) * _pair_signs(other) < 0).sum())
