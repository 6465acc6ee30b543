"""Letters for a leaderboard: two systems share one exactly when no test tells them apart. Pure.

A compact letter display (Piepho 2004, Journal of Computational and Graphical Statistics 13) covers the pairs that do
not differ by groups within which nothing differs. Insert-and-absorb, the usual way, makes thousands of groups of 25
systems with a dozen differences; here groups grow greedily from the best system on, at most one for each pair.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations_with_replacement
from string import ascii_lowercase

import numpy as np
from numpy.typing import NDArray

Group = frozenset[int]


def compact_letter_display(different: NDArray[np.bool_], order: Sequence[int]) -> list[str]:
    """Return each system's letters. `different` is symmetric; `order`: best first, who get the first letters."""
    places = {system: place for place, system in enumerate(order)}
    groups = sorted(groups_of(different, order), key=lambda group: sorted(places[one] for one in group))
    names = _letter_names(len(groups))
    return [
        "".join(name for name, group in zip(names, groups, strict=True) if one in group) for one in range(len(order))
    ]


def groups_of(different: NDArray[np.bool_], order: Sequence[int]) -> list[Group]:
    """Sets of systems within which nothing differs, and that cover every pair that does not."""
    found: list[Group] = []
    covered: set[frozenset[int]] = set()
    for place, one in enumerate(order):
        # From the end of the order, so that the widest group of a system is found first.
        for other in reversed(order[place:]):
            if not different[one, other] and frozenset((one, other)) not in covered:
                group = _grow_group(different, order, [one, other], covered)
                found.append(group)
                covered.update(_group_pairs(group))
    return _sweep_groups(found)


def _grow_group(
    different: NDArray[np.bool_], order: Sequence[int], group: list[int], covered: set[frozenset[int]]
) -> Group:
    """The group with whoever differs from none in it; who covers most new pairs first, of equals the better system."""

    def new_pairs(system: int) -> int:
        return sum(frozenset((system, one)) not in covered for one in group)

    while fitting := [one for one in order if one not in group and not different[one, group].any()]:
        group.append(max(fitting, key=new_pairs))
    return frozenset(group)


def _sweep_groups(groups: list[Group]) -> list[Group]:
    """Without groups whose every pair others have too; the small go first."""
    times = Counter(pair for group in groups for pair in _group_pairs(group))
    left = list(groups)
    # Small groups first: a letter that others make superfluous is most often one of theirs.
    for group in sorted(groups, key=lambda group: (len(group), sorted(group))):
        pairs = _group_pairs(group)
        if all(times[pair] > 1 for pair in pairs):
            left.remove(group)
            times.subtract(pairs)
    return left


def _group_pairs(group: Group) -> list[frozenset[int]]:
    """Every pair of a group, and every member as a pair with itself."""
    return [frozenset(pair) for pair in combinations_with_replacement(group, 2)]


def _letter_names(wanted: int) -> list[str]:
    """a, b, ... z, then a2, b2, ..."""
    turns = [divmod(place, len(ascii_lowercase)) for place in range(wanted)]
    return [ascii_lowercase[at] + (str(turn + 1) if turn else "") for turn, at in turns]
