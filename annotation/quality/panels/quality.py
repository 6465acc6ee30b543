"""Quality of each candidate, and the floor below which none may be on a panel. Pure.

Quality is balanced accuracy on gold where there is enough of it, else Cohen's kappa with the
majority of the other candidates. A low kappa with all others looks like independence, and noise has
the lowest. So candidates must first reach a floor, and prove that their answers are not random.
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

Votes = NDArray[np.int8]  # Candidates x pairs, 0 or 1: all voted on every pair.
ReferenceGrades = NDArray[np.int8]  # For each pair 0, 1 or MISSING.
Groups = Sequence[Sequence[int]]  # Candidates that are copies of each other; each is in exactly one group.

BALANCED, MAJORITY = "balanced_accuracy", "kappa_majority"
CLASS = 20  # Least number of gold pairs of each class for balanced accuracy.
LEAST = {BALANCED: 0.6, MAJORITY: 0.2}  # Least floor.
# Distance below the median that a candidate may have: noise must not win by its low kappas.
SLACK = {BALANCED: 0.1, MAJORITY: 0.2}
NO_GOLD = gettext_noop("no reference grade on these pairs")
FEW_GOLD = gettext_noop(
    "reference grades on %(relevant)s relevant and %(other)s other pairs: %(class)s of each are needed"
)
BY_CHANCE = gettext_noop("no better than chance (p = %(chance)s)")
BELOW = gettext_noop("%(value)s is below the floor of %(bound)s")
CHANCE = 0.01  # Probability that any random candidate passes, over all candidates (Bonferroni).


@dataclass(frozen=True, slots=True)
class Quality:
    """Quality of one candidate. `balanced`: (recall of relevant + recall of not relevant) / 2 on gold, 95% interval."""

    balanced: Statistic
    kappa: Statistic  # With the majority of the others, in which copies count once and its own copies do not.
    left_out: Statistic  # Leave-one-out accuracy: share of pairs on which it agrees with that majority.
    chance: float  # Probability that unrelated answers agree as often (Fisher's exact test).
    passes: bool
    why: str  # Why it does not pass; empty where it does.


@dataclass(frozen=True, slots=True)
class Floor:
    """The quality that a candidate must reach. `given`: whether an admin set it."""

    measure: str
    value: float
    given: bool
    no_gold: str  # Why the measure is not balanced accuracy; empty where it is.


def no_gold(reference: ReferenceGrades) -> str:
    """Return why balanced accuracy cannot be measured on the gold; empty where it can."""
    relevant, other = int((reference == 1).sum()), int((reference == 0).sum())
    if not relevant + other:
        return _(NO_GOLD)
    return "" if min(relevant, other) >= CLASS else _(FEW_GOLD) % {"relevant": relevant, "other": other, "class": CLASS}


def measure_candidates(
    votes: Votes, reference: ReferenceGrades, groups: Groups, *, floor: float | None = None
) -> tuple[list[Quality], Floor]:
    """Measure every candidate and compare it with the floor. `floor`: by default derived from all candidates."""
    reason = no_gold(reference)
    # Copies count as one vote among the others, or a family of models would be its own majority.
    majorities = [majority_of_others(votes, groups, position) for position in range(len(votes))]
    agreements = [_majority_agreement(own, majority) for own, majority in zip(votes, majorities, strict=True)]
    balanced = [balanced_accuracy(own, reference) for own in votes]
    measure = MAJORITY if reason else BALANCED
    values = [kappa.value for kappa, _ in agreements] if reason else [statistic.value for statistic in balanced]
    bound = floor_of(measure, values) if floor is None else floor
    qualities = []
    for position, value in enumerate(values):
        chance = by_chance(votes[position], majorities[position] if reason else reference)
        why = ""
        # Constant votes can agree with a one-sided reference by luck, so they fail whatever their figures are.
        if votes[position].min() == votes[position].max():
            why = _("says yes to every pair") if votes[position][0] else _("says no to every pair")
        elif value is None:
            why = _("quality could not be measured")
        elif chance > CHANCE / len(votes):
            why = _(BY_CHANCE) % {"chance": f"{chance:.2g}"}
        elif value < bound:
            why = _(BELOW) % {"value": f"{value:.3f}", "bound": f"{bound:.3f}"}
        qualities.append(Quality(balanced[position], *agreements[position], chance, not why, why))
    return qualities, Floor(measure, bound, floor is not None, reason)


def floor_of(measure: str, values: Sequence[float | None]) -> float:
    """Return the larger of LEAST and the median of the candidates' values less SLACK."""
    measured_values = [value for value in values if value is not None]
    return max(LEAST[measure], median(measured_values) - SLACK[measure]) if measured_values else LEAST[measure]


def majority_of_others(votes: Votes, groups: Groups, position: int) -> ReferenceGrades:
    """Return the majority verdict of the other candidates for each pair; MISSING where they tie or there are none."""
    # One candidate of each group votes for its copies.
    others = [group[0] for group in groups if position not in group]
    yes = votes[others].sum(axis=0, dtype=np.int64)
    result = np.where(2 * yes > len(others), 1, 0).astype(np.int8)
    result[2 * yes == len(others)] = MISSING
    return result


def balanced_accuracy(votes: NDArray[np.int8], reference: ReferenceGrades) -> Statistic:
    """Return the mean of two recalls; its 95% interval joins their exact ones (Donner and Zou)."""
    sizes = [int((reference == grade).sum()) for grade in (0, 1)]
    if not all(sizes):
        reason = _("reference grades of only one class") if any(sizes) else NO_GOLD
        return Statistic(None, None, None, sum(sizes), reason)
    right = [int(((reference == grade) & (votes == grade)).sum()) for grade in (0, 1)]
    # Equal weights for both classes: balanced accuracy by definition.
    share = stratified_share([Stratum(1, n, hits) for n, hits in zip(sizes, right, strict=True)])
    assert share is not None
    value, (low, high) = share
    return Statistic(value, low, high, sum(sizes), None)


def by_chance(votes: NDArray[np.int8], reference: ReferenceGrades) -> float:
    """Return the one-sided p of Fisher's exact test that unrelated answers agree as often."""
    from scipy.stats import hypergeom

    has_truth = reference != MISSING
    says_yes, is_relevant = votes[has_truth] == 1, reference[has_truth] == 1
    hits = int((says_yes & is_relevant).sum())
    # P(X >= hits) = sf(hits - 1) of the hypergeometric distribution.
    return float(hypergeom.sf(hits - 1, len(says_yes), int(is_relevant.sum()), int(says_yes.sum())))


def _majority_agreement(votes: NDArray[np.int8], majority: ReferenceGrades) -> tuple[Statistic, Statistic]:
    """Measure kappa with the majority of the others, and the share of equal answers."""
    has_majority = majority != MISSING
    if not has_majority.any():
        missing = Statistic(None, None, None, 0, _("the other candidates have no majority on any pair"))
        return missing, missing
    kappa = compute_measures(np.vstack([votes[has_majority], majority[has_majority]])).pairwise[0].kappa
    n, equal = int(has_majority.sum()), int((votes == majority)[has_majority].sum())
    return kappa, Statistic(equal / n, *clopper_pearson(equal, n), n, None)
