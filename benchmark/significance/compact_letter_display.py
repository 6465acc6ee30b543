"""Letters for a leaderboard: two systems share a letter exactly when no test tells them apart. Pure.

A compact letter display (Piepho 2004, Journal of Computational and Graphical Statistics 13) covers
the pairs that do not differ by groups within which nothing differs. Insert-and-absorb, the usual
way, makes thousands of groups of 25 systems with a dozen differences; here groups grow greedily
from the best system, at most one for each pair.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations_with_replacement
from string import ascii_lowercase

import numpy as np
from numpy.typing import NDArray

Group = frozenset[int]


def compact_letter_display(different: NDArray[np.bool_], order: Sequence[int]) -> list[str]:
    """Return each system's letters. `different` is symmetric; `order`: systems, best first."""
    position_of = {system: position for position, system in enumerate(order)}
    groups = sorted(groups_of(different, order), key=lambda group: sorted(position_of[system] for system in group))
    # a, b, ... z, then a2, b2, ...
    suffixes = [divmod(position, len(ascii_lowercase)) for position in range(len(groups))]
    letters = [ascii_lowercase[index] + (str(suffix + 1) if suffix else "") for suffix, index in suffixes]
    return [
        "".join(letter for letter, group in zip(letters, groups, strict=True) if system in group)
        for system in range(len(order))
    ]


def groups_of(different: NDArray[np.bool_], order: Sequence[int]) -> list[Group]:
    """Return sets of systems without differences that cover every pair that does not differ."""
    groups: list[Group] = []
    covered: set[frozenset[int]] = set()
    for position, first in enumerate(order):
        # From the end of the order, so that the widest group of a system is found first.
        for last in reversed(order[position:]):
            if different[first, last] or frozenset((first, last)) in covered:
                continue
            members = [first, last]
            # A system that differs from no member joins: the one that covers most new pairs, of equals the better one.
            while candidates := [s for s in order if s not in members and not different[s, members].any()]:
                new_pairs = [
                    sum(frozenset((system, member)) not in covered for member in members) for system in candidates
                ]
                members.append(candidates[new_pairs.index(max(new_pairs))])
            groups.append(frozenset(members))
            covered.update(_group_pairs(groups[-1]))
    # Drop groups whose pairs are all covered by other groups, the smallest first: they are the
    # ones most often superfluous.
    times, needed_groups = Counter(pair for group in groups for pair in _group_pairs(group)), list(groups)
    for group in sorted(groups, key=lambda group: (len(group), sorted(group))):
        pairs = _group_pairs(group)
        if all(times[pair] > 1 for pair in pairs):
            needed_groups.remove(group)
            times.subtract(pairs)
    return needed_groups


def _group_pairs(group: Group) -> list[frozenset[int]]:
    """Return every pair of a group, and every member as a pair with itself."""
    return [frozenset(pair) for pair in combinations_with_replacement(group, 2)]
