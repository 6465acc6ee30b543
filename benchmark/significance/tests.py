"""Tests beside means: changes with interval and p, ranks and letters. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.significance.compact_letter_display import compact_letter_display
from benchmark.significance.paired import LEVEL, Floats, Tests, holm_correction, holm_levels

MeasureRows = Mapping[str, list[dict[str, Any]]]  # By measure, a row for each system.
SAME = 1e-12  # Means nearer than this share a rank.


@dataclass(frozen=True)
class Values:
    """Values of one measure by query, (systems, queries). `before` is None where the measure needs one version only."""

    before: Floats | None
    after: Floats

    def of(self, positions: NDArray[np.int64]) -> "Values":
        """Return the values of some queries only, by their positions."""
        return Values(None if self.before is None else self.before[:, positions], self.after[:, positions])

    def times(self, weights: Floats) -> "Values":
        """Return the values times the queries' weights, which are on average 1: their means are weighted ones."""
        return Values(None if self.before is None else self.before * weights, self.after * weights)


def join_members(members: Sequence[Values]) -> Values:
    """Join the queries of several collections of the same systems, one collection after the other.

    Each collection has the same weight however many queries it has: with N queries in all and n in
    its own of M collections, the values of a query are multiplied by N / (M n). The mean over all
    queries is then the unweighted mean of the collections' means, and tests over all queries are
    tests of that mean.
    """
    before = [member.before for member in members if member.before is not None]
    after = np.concatenate([member.after for member in members], axis=1)
    joined = Values(np.concatenate(before, axis=1) if len(before) == len(members) else None, after)
    # ADR 0035: without weights the tests would be about another mean than the one shown, decided by the largest member.
    return joined.times(member_weights(members))


def member_weights(members: Sequence[Values]) -> Floats:
    """Return the weight of each query of several collections, one collection after the other; on average 1."""
    sizes = [member.after.shape[1] for member in members]
    return np.repeat([sum(sizes) / (len(sizes) * size) for size in sizes], sizes)


def mean_changes(values: Values) -> list[dict[str, Any]]:
    """Return each system's means before and after, and their change."""
    after = values.after.mean(axis=1)
    if values.before is None:
        return [{"before": None, "after": float(mean), "change": None} for mean in after]
    before = values.before.mean(axis=1)
    return [
        {"before": float(mean_before), "after": float(mean), "change": float(mean - mean_before)}
        for mean_before, mean in zip(before, after, strict=True)
    ]


def add_tests(
    rows: MeasureRows, values: Mapping[str, Values], names: Sequence[str], seed: int, weights: Floats | None = None
) -> None:
    """Add to each system's row the interval and p of its change, ranks and letters. All measures share random signs.

    Interval and p come from the same test, both corrected by Holm over the systems: the interval
    excludes 0 exactly where the corrected p is below 0.05.

    `weights`: the weight of each query, on average 1, by which its values have been multiplied already.
    """
    blocks: list[Floats] = []
    columns_of: dict[tuple[str, str], range] = {}
    for key, versions in values.items():
        for when, matrix in (("before", versions.before), ("after", versions.after)):
            if matrix is not None:
                columns_of[key, when] = range(len(blocks) * len(names), (len(blocks) + 1) * len(names))
                blocks.append(matrix.T)
    # One set of random signs for all columns: 300 pairs of 25 systems cost no more draws than one pair.
    tests = Tests(np.concatenate(blocks, axis=1), seed, weights)
    for (key, when), columns in columns_of.items():
        means = [row[when] for row in rows[key]]
        # (systems, systems): whether two differ, after Holm's correction over all their pairs.
        pairs = list(combinations(range(len(columns)), 2))
        p_holm = holm_correction([tests.p(columns[first], columns[second]) for first, second in pairs])
        is_different = np.zeros((len(columns), len(columns)), dtype=np.bool_)
        for (first, second), corrected_p in zip(pairs, p_holm, strict=True):
            is_different[first, second] = is_different[second, first] = corrected_p < LEVEL
        letters = compact_letter_display(is_different, order_systems(means, names))
        # Rows and letters are both in the order of the systems.
        for row, rank, letter in zip(rows[key], rank_means(means), letters, strict=True):
            row |= {f"rank_{when}": rank, f"letters_{when}": letter}
    for key, versions in values.items():
        if versions.before is not None:
            pairs = list(zip(columns_of[key, "after"], columns_of[key, "before"], strict=True))
            p = [tests.p(*pair) for pair in pairs]
            spans = [tests.interval(*pair, level) for pair, level in zip(pairs, holm_levels(p), strict=True)]
            for row, raw, corrected, (low, high) in zip(rows[key], p, holm_correction(p), spans, strict=True):
                row |= {"low": low, "high": high, "p": raw, "p_holm": corrected}
                row["shift"] = row["rank_before"] - row["rank_after"]


def rank_means(means: Sequence[float]) -> list[int]:
    """Return ranks, 1 for the highest; equal means share the best of their ranks."""
    values = np.asarray(means, dtype=np.float64)
    return [1 + int((values > value + SAME).sum()) for value in values]


def order_systems(means: Sequence[float], names: Sequence[str]) -> list[int]:
    """Return the positions of the systems, best first; systems of the same rank by name."""
    # Means within SAME share a rank, so that the name decides and not the rounding.
    return sorted(range(len(means)), key=lambda system: (rank_means(means)[system], names[system]))


def _pair_signs(means: Sequence[float]) -> Floats:
    """Return a sign for each pair of systems: 1 the first is better, -1 the second, 0 neither."""
    values = np.asarray(means, dtype=np.float64)
    differences = values[:, None] - values[None, :]
    signs = np.where(np.abs(differences) <= SAME, 0, np.sign(differences))
    return np.asarray(signs[np.triu_indices(len(values), 1)], dtype=np.float64)


def kendall_tau(first_means: Sequence[float], second_means: Sequence[float]) -> float | None:
    """Return Kendall's tau-b of two lists of means; None where all means of a list are equal."""
    first_signs, second_signs = _pair_signs(first_means), _pair_signs(second_means)
    # Ties count on neither side (tau-b).
    norm = np.sqrt((first_signs**2).sum() * (second_signs**2).sum())
    return float((first_signs * second_signs).sum() / norm) if norm else None


def count_swapped(first_means: Sequence[float], second_means: Sequence[float]) -> int:
    """Count the pairs of systems whose order is reversed."""
    return int((_pair_signs(first_means) * _pair_signs(second_means) < 0).sum())
