"""Letters for a leaderboard: two systems share one exactly when no test tells them apart. Pure.

A compact letter display (Piepho 2004, Journal of Computational and Graphical Statistics 13) covers
the pairs that do not differ by groups within which nothing differs. Insert-and-absorb, the usual
way, makes thousands of groups of 25 systems with a dozen differences; here groups grow greedily
from the best system on, at most one for each pair.
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
    # a, b, ... z, then a2, b2, ...
    turns = [divmod(place, len(ascii_lowercase)) for place in range(len(groups))]
    names = [ascii_lowercase[at] + (str(turn + 1) if turn else "") for turn, at in turns]
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
            if different[one, other] or frozenset((one, other)) in covered:
                continue
            members = [one, other]
            # Whoever differs from none in it joins; who covers most new pairs first, of equals the better system.
            while fitting := [s for s in order if s not in members and not different[s, members].any()]:
                new = [sum(frozenset((system, member)) not in covered for member in members) for system in fitting]
                members.append(fitting[new.index(max(new))])
            found.append(frozenset(members))
            covered.update(_group_pairs(found[-1]))
    # Without groups whose every pair others have too. Small ones go first: a letter that others
    # make superfluous is most often one of theirs.
    times, left = Counter(pair for group in found for pair in _group_pairs(group)), list(found)
    for group in sorted(found, key=lambda group: (len(group), sorted(group))):
        pairs = _group_pairs(group)
        if all(times[pair] > 1 for pair in pairs):
            left.remove(group)
            times.subtract(pairs)
    return left


def _group_pairs(group: Group) -> list[frozenset[int]]:
    """Every pair of a group, and every member as a pair with itself."""
    return [frozenset(pair) for pair in combinations_with_replacement(group, 2)]
