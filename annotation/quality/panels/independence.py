"""Independence of votes: copies, correlated errors, effective number of votes. Pure."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from annotation.agreement.resampling import MISSING
from annotation.quality.panels.quality import Groups, Truth, Votes

# Kappa from which two candidates may be copies. Frontier models of different makers stay below (Prism 4.3: 0.82).
NEAR = 0.85
SHARED = 2 / 3  # Of the pairs where either goes wrong, the share where both do, from which they are copies.
FEW = 5  # Fewer wrong answers than this prove no common origin, unless all answers are equal.

Kappas = NDArray[np.float64]  # Candidates x candidates; NaN where undefined.


def group_copies(votes: Votes, truth: Truth, kappas: Kappas, alike: Groups = ()) -> list[tuple[int, ...]]:
    """Group candidates whose votes are copies of each other; each candidate is in exactly one group.

    `alike`: candidates that are known to be one model with the same parameters: they are, whatever they answered.

    Two judges who are both good agree as well, so nearly equal answers are not enough: copies go
    wrong on the same pairs. Where a pair has no gold, wrong means: against the majority of all
    others.
    """
    groups = [{place} for place in range(len(votes))]
    for a, b in combinations(range(len(votes)), 2):
        known = any(a in group and b in group for group in alike)
        # Joined sets are shared objects, so a copy of a copy lands in one group.
        if groups[a] is not groups[b] and (known or _are_copies(votes, truth, kappas, a, b)):
            groups[a] |= groups[b]
            for place in groups[b]:
                groups[place] = groups[a]
    return [tuple(sorted(group)) for place, group in enumerate(groups) if place == min(group)]


def _are_copies(votes: Votes, truth: Truth, kappas: Kappas, a: int, b: int) -> bool:
    if (votes[a] == votes[b]).all():
        return True
    # Written with `not`, so that an undefined kappa (NaN) counts as below.
    if not kappas[a, b] >= NEAR:
        return False
    # Gold where there is some; elsewhere the majority of the others stands in.
    others = len(votes) - 2
    yes = votes.sum(axis=0, dtype=np.int64) - votes[a] - votes[b]
    most = np.where(2 * yes == others, MISSING, 2 * yes > others)
    right = np.where(truth == MISSING, most, truth)
    there, wrong_a, wrong_b = right != MISSING, votes[a] != right, votes[b] != right
    either, both = int((wrong_a | wrong_b)[there].sum()), int((wrong_a & wrong_b)[there].sum())
    return either >= FEW and both >= SHARED * either


def error_correlations(votes: Votes, truth: Truth) -> Kappas:
    """Pearson's correlation (phi) of "is wrong" between every two candidates on gold; NaN where one makes no error."""
    there = truth != MISSING
    if not there.any():
        return np.full((len(votes), len(votes)), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        result: Kappas = np.corrcoef(votes[:, there] != truth[there])
    return result


def effective_votes(members: int, correlation: float | None) -> float | None:
    """Independent votes that a panel is worth: n / (1 + (n - 1) r), r the mean correlation of its members' errors.

    Kish's design effect (Survey Sampling, 1965, 8.2): five votes whose errors always coincide are
    one vote. Never more than n: a mean below 0 is hardly ever more than chance. None where r is
    unknown.
    """
    # Below 0 votes would be worth more than their number, which a small sample may suggest.
    return None if correlation is None else members / (1 + (members - 1) * max(correlation, 0.0))


def mean_between(matrix: Kappas, members: Sequence[int]) -> float | None:
    """Mean over every two members; None where one of the values is undefined."""
    values = [float(matrix[a, b]) for a, b in combinations(members, 2)]
    mean = float(np.mean(values)) if values else float("nan")
    return mean if np.isfinite(mean) else None
