"""Tests beside means: changes with interval and p, ranks and letters. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.report.graded_runs import Floats
from benchmark.significance.compact_letter_display import compact_letter_display
from benchmark.significance.paired import Tests, holm_correction, holm_levels, significant_differences

Told = Mapping[str, list[dict[str, Any]]]  # By measure, a row for each system.
SAME = 1e-12  # Means nearer than this are one place.


@dataclass(frozen=True)
class Values:
    """Values of one measure by query, (systems, queries). `before` is None where the measure needs one version only."""

    before: Floats | None
    after: Floats

    def of(self, places: NDArray[np.int64]) -> "Values":
        """The values of some queries alone."""
        return Values(None if self.before is None else self.before[:, places], self.after[:, places])


def join_members(members: Sequence[Values]) -> Values:
    """The queries of several collections of the same systems, one collection after the other.

    Each collection counts alike however many queries it has: a query of N in all and n of its own,
    in M collections, has its value times N / (M n). The mean over all queries is then the
    unweighted mean of the collections' means, and tests over all queries are tests of that mean.
    """
    sizes = [one.after.shape[1] for one in members]
    # ADR 0035: without weights the tests would be about another mean than the one shown, decided by the largest member.
    weights = weights_of(sizes)

    def joined(parts: Sequence[Floats]) -> Floats:
        # Values times their weights: means over all of them are then means of the members' means.
        return np.concatenate([part * weight for part, weight in zip(parts, weights, strict=True)], axis=1)

    before = [one.before for one in members if one.before is not None]
    return Values(joined(before) if len(before) == len(members) else None, joined([one.after for one in members]))


def weights_of(sizes: Sequence[int]) -> list[float]:
    """Return a query's weight in each collection, by numbers of queries; on average 1."""
    return [sum(sizes) / (len(sizes) * size) for size in sizes]


def mean_changes(values: Values) -> list[dict[str, Any]]:
    """Return each system's means before and after, and their change."""
    after = values.after.mean(axis=1)
    if values.before is None:
        return [{"before": None, "after": float(now), "change": None} for now in after]
    before = values.before.mean(axis=1)
    return [
        {"before": float(then), "after": float(now), "change": float(now - then)}
        for then, now in zip(before, after, strict=True)
    ]


def add_tests(
    told: Told, values: Mapping[str, Values], names: Sequence[str], seed: int, sizes: Sequence[int] = ()
) -> None:
    """Add to each system's row the interval and p of its change, ranks and letters; all measures share random signs.

    Interval and p are one test, both corrected by Holm over the systems: the interval leaves out 0
    exactly where the corrected p is below 0.05.

    `sizes`: how many queries each collection has, where there are several, one after the other.
    """
    blocks: list[Floats] = []
    at: dict[tuple[str, str], range] = {}
    for key, one in values.items():
        for when, found in (("before", one.before), ("after", one.after)):
            if found is not None:
                at[key, when] = range(len(blocks) * len(names), (len(blocks) + 1) * len(names))
                blocks.append(found.T)
    weights = np.repeat(weights_of(sizes), sizes) if sizes else None
    # One set of random signs for all columns: 300 pairs of 25 systems cost no more draws than one pair.
    tests = Tests(np.concatenate(blocks, axis=1), seed, weights)
    for (key, when), columns in at.items():
        means = [row[when] for row in told[key]]
        given = compact_letter_display(significant_differences(tests, columns), order_systems(means, names))
        # Rows and letters are both by place of the system.
        for row, rank, letter in zip(told[key], rank_means(means), given, strict=True):
            row |= {f"rank_{when}": rank, f"letters_{when}": letter}
    for key, one in values.items():
        if one.before is not None:
            pairs = list(zip(at[key, "after"], at[key, "before"], strict=True))
            p = [tests.p(*pair) for pair in pairs]
            spans = [tests.interval(*pair, level) for pair, level in zip(pairs, holm_levels(p), strict=True)]
            for row, raw, corrected, (low, high) in zip(told[key], p, holm_correction(p), spans, strict=True):
                row |= {"low": low, "high": high, "p": raw, "p_holm": corrected}
                row["shift"] = row["rank_before"] - row["rank_after"]


def rank_means(means: Sequence[float]) -> list[int]:
    """1 for the highest; equal means share the best of their places."""
    values = np.asarray(means, dtype=np.float64)
    return [1 + int((values > value + SAME).sum()) for value in values]


def order_systems(means: Sequence[float], names: Sequence[str]) -> list[int]:
    """Places of the systems, best first; equals by name."""
    # Means within SAME are one rank, so the name decides and not the rounding.
    return sorted(range(len(means)), key=lambda one: (rank_means(means)[one], names[one]))


def _pair_signs(means: Sequence[float]) -> Floats:
    """Return for each two systems: 1 the first is better, -1 the second, 0 neither."""
    values = np.asarray(means, dtype=np.float64)
    differences = values[:, None] - values[None, :]
    signs = np.where(np.abs(differences) <= SAME, 0, np.sign(differences))
    return np.asarray(signs[np.triu_indices(len(values), 1)], dtype=np.float64)


def kendall_tau(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Kendall's tau-b of two lists of means; None where one of them orders nothing."""
    first, second = _pair_signs(one), _pair_signs(other)
    # Ties count on neither side (tau-b).
    room = np.sqrt((first**2).sum() * (second**2).sum())
    return float((first * second).sum() / room) if room else None


def count_swapped(one: Sequence[float], other: Sequence[float]) -> int:
    """Pairs of systems of which the one that was better is now the worse."""
    return int((_pair_signs(one) * _pair_signs(other) < 0).sum())
