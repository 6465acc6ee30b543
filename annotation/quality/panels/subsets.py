"""Subsets of candidates of an odd size, the most independent first (Prism 4.3). Pure numpy."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SIZE = 5  # Default number of judges on a panel.
SIZES_TO_CHOOSE = (3, 5, 7, 9)
MOST = 40
MOST_SETS = comb(MOST, SIZE)  # Most subsets that are tried: 658,008, those of five of 40 candidates.
SHOWN = 10


@dataclass(frozen=True, slots=True)
class Subset:
    """A subset of the candidates, with the kappas between its members."""

    members: tuple[int, ...]  # Positions of the candidates.
    mean_kappa: float
    largest_kappa: float
    most_similar: tuple[int, int]  # The two members between whom the kappa is largest.


class RankedSubsets(NamedTuple):
    """The number of all subsets, and the best of them in two orders, the lowest kappa first."""

    subset_count: int
    by_mean_kappa: tuple[Subset, ...]
    by_largest_kappa: tuple[Subset, ...]


def most_candidates(size: int) -> int:
    """Return the most candidates of which all subsets of this size can be tried: 40 for 3 and 5, 26 for 7, 22 for 9."""
    return max(count for count in range(size, MOST + 1) if comb(count, size) <= MOST_SETS)


def rank_subsets(
    kappas: NDArray[np.float64], positions: Sequence[int], *, size: int = SIZE, shown: int = SHOWN
) -> RankedSubsets:
    """Rank the subsets of the candidates at `positions`, and return the `shown` best ones in each order.

    Ties are broken by the other kappa, then by the order of the candidates. Raises ValueError for too many candidates.
    """
    count = comb(len(positions), size)
    if len(positions) > most_candidates(size):
        raise ValueError(f"{len(positions)} candidates have {count:,} sets of {size}")
    if not count:
        return RankedSubsets(0, (), ())
    flat_sets = np.fromiter(chain.from_iterable(combinations(sorted(positions), size)), np.int16, count * size)
    sets = flat_sets.reshape(count, size)
    member_pairs = list(combinations(range(size), 2))
    values = np.stack([kappas[sets[:, a], sets[:, b]] for a, b in member_pairs], axis=1)
    # Rounded, because sums of the same kappas in another order differ in their last digits, which would hide ties.
    mean, largest = values.mean(axis=1).round(12), values.max(axis=1).round(12)

    def build_subset(row: int) -> Subset:
        largest_position = int(values[row].argmax())
        members = tuple(sets[row].tolist())
        a, b = member_pairs[largest_position]
        return Subset(
            members=members,
            mean_kappa=float(values[row].mean()),
            largest_kappa=float(values[row, largest_position]),
            most_similar=(members[a], members[b]),
        )

    # lexsort is stable: full ties keep the order of combinations().
    rows_by_mean = np.lexsort((largest, mean))[:shown].tolist()
    rows_by_largest = np.lexsort((mean, largest))[:shown].tolist()
    return RankedSubsets(count, tuple(map(build_subset, rows_by_mean)), tuple(map(build_subset, rows_by_largest)))
