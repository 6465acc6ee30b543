"""Subsets of candidates of an odd size, the most independent first (Prism 4.3). Pure numpy."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from math import comb

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
    mean: float  # Mean pairwise kappa.
    largest: float  # Largest pairwise kappa.
    between: tuple[int, int]  # The two members that have it.


def most_candidates(size: int) -> int:
    """Return the most candidates of which all subsets of this size can be tried: 40 for 3 and 5, 26 for 7, 22 for 9."""
    return max(count for count in range(size, MOST + 1) if comb(count, size) <= MOST_SETS)


def rank_subsets(
    kappas: NDArray[np.float64], positions: Sequence[int], *, size: int = SIZE, shown: int = SHOWN
) -> tuple[int, tuple[Subset, ...], tuple[Subset, ...]]:
    """Return the number of subsets of `positions`, the best by mean kappa, and the best by largest kappa.

    Ties are broken by the other kappa, then by the order of the candidates. Raises ValueError for too many candidates.
    """
    count = comb(len(positions), size)
    if len(positions) > most_candidates(size):
        raise ValueError(f"{len(positions)} candidates have {count:,} sets of {size}")
    if not count:
        return 0, (), ()
    flat_sets = np.fromiter(chain.from_iterable(combinations(sorted(positions), size)), np.int16, count * size)
    sets = flat_sets.reshape(count, size)
    member_pairs = list(combinations(range(size), 2))
    values = np.stack([kappas[sets[:, a], sets[:, b]] for a, b in member_pairs], axis=1)
    # Rounded, because sums of the same kappas in another order differ in their last digits, which would hide ties.
    mean, largest = values.mean(axis=1).round(12), values.max(axis=1).round(12)

    def subset(row: int) -> Subset:
        top = int(values[row].argmax())
        members = tuple(sets[row].tolist())
        a, b = member_pairs[top]
        return Subset(members, float(values[row].mean()), float(values[row, top]), (members[a], members[b]))

    # lexsort is stable: full ties keep the order of combinations().
    by_mean, by_largest = np.lexsort((largest, mean))[:shown], np.lexsort((mean, largest))[:shown]
    return count, tuple(map(subset, by_mean.tolist())), tuple(map(subset, by_largest.tolist()))
