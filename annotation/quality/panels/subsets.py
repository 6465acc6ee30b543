"""All sets of an odd size, the most independent first (Prism 4.3). Pure numpy."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

SIZE = 5  # Judges that are chosen where nothing else is asked for.
SIZES_TO_CHOOSE = (3, 5, 7, 9)
MOST = 40
MOST_SETS = comb(MOST, SIZE)  # Sets that are looked at, 658,008: those of 40 candidates by five.
SHOWN = 10


@dataclass(frozen=True, slots=True)
class Subset:
    """Places of candidates, the mean of their kappas two by two, the largest of these, and between whom it stands."""

    members: tuple[int, ...]
    mean: float
    largest: float
    between: tuple[int, int]


def most_candidates(size: int) -> int:
    """Return how many candidates there may be for all sets of this size to be tried.

    40 for 3 and 5, 26 for 7, 22 for 9.
    """
    return max(count for count in range(size, MOST + 1) if comb(count, size) <= MOST_SETS)


def rank_subsets(
    kappas: NDArray[np.float64], places: Sequence[int], *, size: int = SIZE, shown: int = SHOWN
) -> tuple[int, tuple[Subset, ...], tuple[Subset, ...]]:
    """Count all subsets of `places`, and return the best by smallest mean and those by smallest largest kappa.

    Ties go to the other order, then to the earlier candidates. Raises ValueError for too many.
    """
    count = comb(len(places), size)
    if len(places) > most_candidates(size):
        raise ValueError(f"{len(places)} candidates have {count:,} sets of {size}")
    if not count:
        return 0, (), ()
    chosen = np.fromiter(chain.from_iterable(combinations(sorted(places), size)), np.int16, count * size)
    sets = chosen.reshape(count, size)
    two = list(combinations(range(size), 2))
    values = np.stack([kappas[sets[:, a], sets[:, b]] for a, b in two], axis=1)
    # Rounded, because sums of the same kappas in another order differ in their last digits and would hide ties.
    mean, largest = values.mean(axis=1).round(12), values.max(axis=1).round(12)

    def subset(at: int) -> Subset:
        top = int(values[at].argmax())
        members = tuple(sets[at].tolist())
        a, b = two[top]
        return Subset(members, float(values[at].mean()), float(values[at, top]), (members[a], members[b]))

    # lexsort is stable: where both are equal, the set that combinations() gave first stays first.
    by_mean, by_largest = np.lexsort((largest, mean))[:shown], np.lexsort((mean, largest))[:shown]
    return count, tuple(map(subset, by_mean.tolist())), tuple(map(subset, by_largest.tolist()))
