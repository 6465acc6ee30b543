"""The quality of each candidate for a panel, and the floor that a candidate must reach.

The quality is measured by balanced accuracy if there are enough reference grades, and otherwise by Cohen's kappa with
the majority of the other candidates. Candidates must reach a floor, and show that their votes are not random, because
noise has the lowest kappas of all and would otherwise look like independence. The module reads no database.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

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

BALANCED, MAJORITY = "balanced_accuracy", "kappa_majority"  # The two measures of quality.
MIN_CLASS_SIZE = 20  # Fewest reference grades of each class with which balanced accuracy is the measure.
MIN_FLOOR = {BALANCED: 0.6, MAJORITY: 0.2}  # The floor is never lower than this.
# The floor is this far below the median of the candidates.
DISTANCE_BELOW_MEDIAN = {BALANCED: 0.1, MAJORITY: 0.2}
# Probability that any of the candidates passes although all vote at random (Bonferroni).
MAX_CHANCE_PROBABILITY = 0.01
NO_GOLD = gettext_noop("no reference grade on these pairs")
FEW_GOLD = gettext_noop(
    "reference grades on %(relevant)s relevant and %(other)s other pairs: %(class)s of each are needed"
)
BY_CHANCE = gettext_noop("not surely better than chance (p = %(chance)s, above the limit of %(limit)s)")
BELOW = gettext_noop("%(value)s is below the floor of %(bound)s")


@dataclass(frozen=True, slots=True)
class Quality:
    """The quality of one candidate.

    In the majority of the other candidates, copies count as one candidate, and copies of this one do not count.
    """

    balanced_accuracy: Statistic  # On pairs with a reference grade.
    majority_kappa: Statistic  # Cohen's kappa with the majority of the other candidates.
    majority_agreement: Statistic  # Share of pairs on which the candidate votes as that majority.
    chance_probability: float  # Probability that random votes agree as often (Fisher's exact test).
    passes: bool
    failure_reason: str  # Why the candidate does not pass; empty if it passes.


@dataclass(frozen=True, slots=True)
class Floor:
    """The quality that a candidate must reach."""

    measure: str  # BALANCED or MAJORITY.
    value: float
    is_set_by_admin: bool  # If not, it is derived from the candidates.
    no_gold_reason: str  # Why the measure is not balanced accuracy; empty if it is.


def measure_candidates(
    votes: Votes, reference: ReferenceGrades, groups: Groups, *, floor: float | None = None
) -> tuple[list[Quality], Floor]:
    """Measure every candidate, and compare it with the floor, which is by default derived from all candidates."""
    no_gold_reason = explain_missing_gold(reference)
    measure = MAJORITY if no_gold_reason else BALANCED
    majorities = [majority_of_others(votes, groups, position) for position in range(len(votes))]
    majority_agreements = [
        _measure_majority_agreement(own_votes, majority) for own_votes, majority in zip(votes, majorities, strict=True)
    ]
    balanced_accuracies = [balanced_accuracy(own_votes, reference) for own_votes in votes]
    if measure == BALANCED:
        values = [statistic.value for statistic in balanced_accuracies]
    else:
        values = [agreement.kappa.value for agreement in majority_agreements]
    floor_value = derive_floor(measure, values) if floor is None else floor
    qualities = []
    for position, value in enumerate(values):
        own_votes = votes[position]
        compared_labels = reference if measure == BALANCED else majorities[position]
        probability = chance_probability(own_votes, compared_labels)
        failure_reason = ""
        # Constant votes can agree with a one-sided reference by luck, so they fail whatever their figures are.
        if own_votes.min() == own_votes.max():
            failure_reason = _("says yes to every pair") if own_votes[0] else _("says no to every pair")
        elif value is None:
            failure_reason = _("quality could not be measured")
        elif probability > (chance_limit := MAX_CHANCE_PROBABILITY / len(votes)):
            failure_reason = _(BY_CHANCE) % {"chance": f"{probability:.2g}", "limit": f"{chance_limit:.2g}"}
        elif value < floor_value:
            failure_reason = _(BELOW) % {"value": f"{value:.3f}", "bound": f"{floor_value:.3f}"}
        qualities.append(
            Quality(
                balanced_accuracy=balanced_accuracies[position],
                majority_kappa=majority_agreements[position].kappa,
                majority_agreement=majority_agreements[position].equal_share,
                chance_probability=probability,
                passes=not failure_reason,
                failure_reason=failure_reason,
            )
        )
    return qualities, Floor(
        measure=measure, value=floor_value, is_set_by_admin=floor is not None, no_gold_reason=no_gold_reason
    )


def explain_missing_gold(reference: ReferenceGrades) -> str:
    """Return why there are too few reference grades for balanced accuracy; empty if there are enough."""
    relevant = int((reference == 1).sum())
    not_relevant = int((reference == 0).sum())
    if not relevant + not_relevant:
        return _(NO_GOLD)
    if min(relevant, not_relevant) >= MIN_CLASS_SIZE:
        return ""
    return _(FEW_GOLD) % {"relevant": relevant, "other": not_relevant, "class": MIN_CLASS_SIZE}


def derive_floor(measure: str, values: Sequence[float | None]) -> float:
    """Return a floor somewhat below the median of the candidates' values, but at least MIN_FLOOR."""
    measured_values = [value for value in values if value is not None]
    if not measured_values:
        return MIN_FLOOR[measure]
    return max(MIN_FLOOR[measure], median(measured_values) - DISTANCE_BELOW_MEDIAN[measure])


def majority_of_others(votes: Votes, groups: Groups, position: int) -> ReferenceGrades:
    """Return the majority label of the other candidates for each pair; MISSING if they tie, or if there are none."""
    # Only one candidate of each group of copies votes, or a family of models would be its own majority.
    others = [group[0] for group in groups if position not in group]
    yes_votes = votes[others].sum(axis=0, dtype=np.int64)
    labels = np.where(2 * yes_votes > len(others), 1, 0).astype(np.int8)
    labels[2 * yes_votes == len(others)] = MISSING
    return labels


def balanced_accuracy(votes: NDArray[np.int8], reference: ReferenceGrades) -> Statistic:
    """Return the mean of the recalls of both classes; its 95% interval joins their exact ones (Donner and Zou)."""
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


def chance_probability(votes: NDArray[np.int8], labels: ReferenceGrades) -> float:
    """Return the probability that random votes agree with the labels as often (Fisher's exact test, one-sided)."""
    from scipy.stats import hypergeom

    has_label = labels != MISSING
    says_yes, is_relevant = votes[has_label] == 1, labels[has_label] == 1
    hits = int((says_yes & is_relevant).sum())
    # P(X >= hits) = sf(hits - 1) of the hypergeometric distribution.
    return float(hypergeom.sf(hits - 1, len(says_yes), int(is_relevant.sum()), int(says_yes.sum())))


class MajorityAgreement(NamedTuple):
    """Agreement of a candidate with the majority of the others."""

    kappa: Statistic
    equal_share: Statistic  # Share of the pairs on which they agree.


def _measure_majority_agreement(votes: NDArray[np.int8], majority: ReferenceGrades) -> MajorityAgreement:
    has_majority = majority != MISSING
    if not has_majority.any():
        reason = _("the other candidates have no majority on any pair")
        undefined = Statistic(value=None, low=None, high=None, n=0, reason=reason)
        return MajorityAgreement(undefined, undefined)
    kappa = compute_measures(np.vstack([votes[has_majority], majority[has_majority]])).pairwise[0].kappa
    n = int(has_majority.sum())
    equal = int((votes == majority)[has_majority].sum())
    low, high = clopper_pearson(equal, n)
    return MajorityAgreement(kappa, Statistic(value=equal / n, low=low, high=high, n=n, reason=None))
