"""Quality of each candidate, and the floor below which nobody may sit on a panel. Pure.

Quality is balanced accuracy on gold where there is enough of it, else Cohen's kappa with the
majority of the other candidates. A low kappa with everybody looks like independence, and nothing
has a lower one than noise: so the floor comes first, and it asks for proof that the answers have
anything to do with the truth.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from annotation.agreement.measures import Statistic, compute_measures
from annotation.agreement.proportions import Stratum, clopper_pearson, stratified_share
from annotation.agreement.resampling import MISSING
from charts.translation import gettext_noop

Votes = NDArray[np.int8]  # Candidates x pairs, 0 or 1: everybody voted on every pair.
Truth = NDArray[np.int8]  # For each pair 0, 1 or MISSING.
# Candidates that are copies of each other stand in one group; every candidate is in exactly one.
Groups = Sequence[Sequence[int]]

BALANCED, MAJORITY = "balanced_accuracy", "kappa_majority"
CLASS = 20  # Gold pairs of each class from which balanced accuracy is taken.
LEAST = {BALANCED: 0.6, MAJORITY: 0.2}  # No floor is below this.
# How far below the median a candidate may be: noise must not win by its low kappas.
SLACK = {BALANCED: 0.1, MAJORITY: 0.2}
NO_GOLD = gettext_noop("no reference grade on these pairs")
FEW_GOLD = gettext_noop(
    "reference grades on %(relevant)s relevant and %(other)s other pairs: %(class)s of each are needed"
)
BY_CHANCE = gettext_noop("no better than chance (p = %(chance)s)")
BELOW = gettext_noop("%(value)s is below the floor of %(bound)s")
CHANCE = 0.01  # Probability that any judge which answers at random passes, over all candidates together (Bonferroni).


@dataclass(frozen=True, slots=True)
class Quality:
    """Quality of one candidate. `balanced`: (recall of relevant + recall of not relevant) / 2 on gold, 95% interval."""

    balanced: Statistic
    kappa: Statistic  # With the majority of the others; copies count once there, and own copies not at all.
    left_out: Statistic  # Leave-one-out accuracy: share of pairs where it says what that majority says.
    # Probability that unrelated answers agree with it so often (Fisher's exact test).
    chance: float
    passes: bool
    why: str  # Why it does not pass; empty where it does.


@dataclass(frozen=True, slots=True)
class Floor:
    """The quality that a candidate must reach. `given`: the admin set it."""

    measure: str
    value: float
    given: bool
    no_gold: str  # Why balanced accuracy was not taken; empty where it was.


def no_gold(truth: Truth) -> str:
    """Say why the gold does not measure balanced accuracy; empty where it does."""
    relevant, other = int((truth == 1).sum()), int((truth == 0).sum())
    if not relevant + other:
        return _(NO_GOLD)
    return "" if min(relevant, other) >= CLASS else _(FEW_GOLD) % {"relevant": relevant, "other": other, "class": CLASS}


def measure_candidates(
    votes: Votes, truth: Truth, groups: Groups, *, floor: float | None = None
) -> tuple[list[Quality], Floor]:
    """Measure every candidate and hold it to the floor. `floor`: instead of the one that is found from the field."""
    reason = no_gold(truth)
    # Copies vote once among the others, or a family of models would be its own majority.
    others = [majority_of_others(votes, groups, place) for place in range(len(votes))]
    measured = [_majority_agreement(mine, other) for mine, other in zip(votes, others, strict=True)]
    balanced = [balanced_accuracy(mine, truth) for mine in votes]
    kind = MAJORITY if reason else BALANCED
    values = [kappa.value for kappa, _ in measured] if reason else [one.value for one in balanced]
    bound = floor_of(kind, values) if floor is None else floor
    found = []
    for place, value in enumerate(values):
        chance = by_chance(votes[place], others[place] if reason else truth)
        why = _explain_failure(value, bound, chance, len(votes), votes[place])
        found.append(Quality(balanced[place], *measured[place], chance, not why, why))
    return found, Floor(kind, bound, floor is not None, reason)


def floor_of(kind: str, values: Sequence[float | None]) -> float:
    """The larger of LEAST and the median candidate's value less SLACK."""
    known = [value for value in values if value is not None]
    return max(LEAST[kind], median(known) - SLACK[kind]) if known else LEAST[kind]


def majority_of_others(votes: Votes, groups: Groups, place: int) -> Truth:
    """Return the verdict of most other candidates, pair by pair; MISSING where they tie or there is nobody else."""
    # One of each group speaks for its copies.
    others = [group[0] for group in groups if place not in group]
    yes = votes[others].sum(axis=0, dtype=np.int64)
    result = np.where(2 * yes > len(others), 1, 0).astype(np.int8)
    result[2 * yes == len(others)] = MISSING
    return result


def balanced_accuracy(votes: NDArray[np.int8], truth: Truth) -> Statistic:
    """The mean of two recalls; its 95% interval joins their exact ones (Donner and Zou)."""
    sizes = [int((truth == grade).sum()) for grade in (0, 1)]
    if not all(sizes):
        reason = _("reference grades of only one class") if any(sizes) else NO_GOLD
        return Statistic(None, None, None, sum(sizes), reason)
    right = [int(((truth == grade) & (votes == grade)).sum()) for grade in (0, 1)]
    # Equal weights for both classes: balanced accuracy by definition.
    joined = stratified_share([Stratum(1, n, hits) for n, hits in zip(sizes, right, strict=True)])
    assert joined is not None
    value, (low, high) = joined
    return Statistic(value, low, high, sum(sizes), None)


def by_chance(votes: NDArray[np.int8], truth: Truth) -> float:
    """Return the one-sided p of Fisher's exact test that as many agreements come from two unrelated sets of answers."""
    from scipy.stats import hypergeom

    there = truth != MISSING
    said, true = votes[there] == 1, truth[there] == 1
    # P(X >= hits) = sf(hits - 1) of the hypergeometric distribution.
    return float(hypergeom.sf(int((said & true).sum()) - 1, len(said), int(true.sum()), int(said.sum())))


def _majority_agreement(mine: NDArray[np.int8], other: Truth) -> tuple[Statistic, Statistic]:
    """Measure kappa with the majority of the others, and the share of equal answers."""
    there = other != MISSING
    if not there.any():
        none = Statistic(None, None, None, 0, _("the other candidates have no majority on any pair"))
        return none, none
    kappa = compute_measures(np.vstack([mine[there], other[there]])).pairwise[0].kappa
    n, equal = int(there.sum()), int((mine == other)[there].sum())
    return kappa, Statistic(equal / n, *clopper_pearson(equal, n), n, None)


def _explain_failure(value: float | None, bound: float, chance: float, candidates: int, votes: NDArray[np.int8]) -> str:
    # Constant votes can agree with a one-sided truth by luck, so this comes before the figures.
    if votes.min() == votes.max():
        return _("says yes to every pair") if votes[0] else _("says no to every pair")
    if value is None:
        return _("quality could not be measured")
    if chance > CHANCE / candidates:
        return _(BY_CHANCE) % {"chance": f"{chance:.2g}"}
    return "" if value >= bound else _(BELOW) % {"value": f"{value:.3f}", "bound": f"{bound:.3f}"}
