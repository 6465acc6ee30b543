"""Choice of the judges of a panel from stored votes: the most independent of those that are accurate enough. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from django.utils.translation import gettext as _

from annotation.agreement.measures import Pairwise, Statistic, compute_measures
from annotation.agreement.resampling import MISSING
from annotation.quality.panels import independence, quality, subsets
from annotation.quality.panels.independence import Kappas
from annotation.quality.panels.quality import Floor, Groups, Quality, ReferenceGrades, Votes
from annotation.quality.panels.subsets import SIZE, Subset
from charts.translation import gettext_noop

TOO_FEW_CANDIDATES = gettext_noop("a panel needs %(size)s judges, but there are only %(candidates)s candidates")
TOO_FEW_ABOVE_FLOOR = gettext_noop(
    "a panel needs %(size)s judges, but only %(passed)s of %(candidates)s candidates are above the floor"
)
TOO_FEW_WITHOUT_COPIES = gettext_noop(
    "a panel needs %(size)s judges; %(passed)s of %(candidates)s candidates are above the floor, but only %(eligible)s"
    " of them are not copies of each other"
)


class GoldCounts(NamedTuple):
    """Numbers of pairs with a reference grade, by class."""

    not_relevant: int
    relevant: int


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed panel. Its label is that of more than half of its votes."""

    subset: Subset  # The members, and the kappas between them.
    correlation: float | None  # Mean correlation of the members' errors on gold; None if a member makes no errors.
    effective: float | None  # Effective number of independent votes; None if the correlation is.
    majority: Statistic  # Balanced accuracy of the majority on gold.
    accuracies_without: tuple[float | None, ...]  # The same without each member in turn; None without gold.
    cost: float | None  # USD for the votes on one pair; None if the price of a member is unknown.

    @property
    def members(self) -> tuple[int, ...]:
        """Positions of the members among the candidates."""
        return self.subset.members


@dataclass(frozen=True, slots=True)
class PanelChoice:
    """The proposed panels, and the figures of all candidates. A candidate is named by its position in the votes."""

    pairs: int  # Number of pairs on which all candidates voted.
    gold: GoldCounts
    qualities: tuple[Quality, ...]  # Of each candidate.
    floor: Floor  # What the quality of a candidate must reach.
    pairwise: tuple[Pairwise, ...]  # Agreement of any two candidates.
    correlations: Kappas  # Correlation of the errors of any two candidates on gold.
    mean_kappas: tuple[float | None, ...]  # Mean kappa of each candidate with the others; None if all are undefined.
    copies: tuple[tuple[int, ...], ...]  # Groups of two or more candidates that are copies of each other.
    eligible: tuple[int, ...]  # Candidates that may be proposed: those above the floor, but only one of each group.
    subset_count: int  # Number of panels of the requested size that the eligible candidates could form.
    by_mean: tuple[Proposal, ...]  # The best of these panels, smallest mean kappa between members first.
    by_largest: tuple[Proposal, ...]  # The same, smallest largest kappa between two members first.
    reason: str  # Why no panel is proposed; empty if one is.

    @property
    def proposed(self) -> Proposal | None:
        """The panel with the smallest mean kappa; None if no panel is proposed."""
        return self.by_mean[0] if self.by_mean else None


def choose_judges(
    votes: Votes,
    reference: ReferenceGrades,
    *,
    costs: Sequence[float | None] = (),
    floor_value: float | None = None,
    bootstrap: int = 0,
    size: int = SIZE,
    model_groups: Groups = (),
) -> PanelChoice:
    """Measure the candidates, and propose panels of those that are above the floor.

    1. Measure the agreement of any two candidates, and group those that are copies of each other.
    2. Measure the quality of each candidate, and compare it with the floor.
    3. Select the eligible candidates.
    4. Rank the panels that they can form by the kappas between the members, and measure the best panels.

    `votes` has a row for each candidate and a column for each pair, at least two rows and one column, with
    values 0 and 1. `reference` contains the reference grade of each pair, or MISSING. `costs` are USD for a
    vote of each candidate, None if unknown; without any, all are unknown. `floor_value` replaces the floor
    that is derived from the candidates. `bootstrap` is the number of resamples for the intervals of kappa.
    `model_groups` are candidates that are the same model, and so copies whatever they vote.

    Raises ValueError if the number of eligible candidates exceeds subsets.most_candidates(size).
    """
    # 1. Agreement and copies.
    pairwise = tuple(compute_measures(votes, bootstrap=bootstrap).pairwise)
    kappas = np.full((len(votes), len(votes)), np.nan)  # The diagonal stays NaN.
    for agreement in pairwise:
        kappa = np.nan if agreement.kappa.value is None else agreement.kappa.value
        kappas[agreement.a, agreement.b] = kappa
        kappas[agreement.b, agreement.a] = kappa
    groups = independence.group_copies(votes, reference, kappas, model_groups)

    # 2. Quality.
    qualities, floor = quality.measure_candidates(votes, reference, groups, floor=floor_value)
    # If gold is too scarce for the floor, it is not used below either: the ranking would be a matter of luck.
    usable_reference = np.full_like(reference, MISSING) if floor.no_gold else reference

    # 3. Eligible candidates.
    eligible: list[int] = []
    for group in groups:
        passing = [position for position in group if qualities[position].passes]
        eligible += passing[:1]  # Of copies, only the first may be proposed.
    eligible.sort()

    # 4. Panels.
    subset_count, subsets_by_mean, subsets_by_largest = subsets.rank_subsets(kappas, eligible, size=size)
    correlations = independence.error_correlations(votes, usable_reference)
    vote_costs = tuple(costs) or (None,) * len(votes)

    def propose(subset: Subset) -> Proposal:
        return _build_proposal(subset, votes, usable_reference, correlations, vote_costs)

    return PanelChoice(
        pairs=votes.shape[1],
        gold=GoldCounts(not_relevant=int((reference == 0).sum()), relevant=int((reference == 1).sum())),
        qualities=tuple(qualities),
        floor=floor,
        pairwise=pairwise,
        correlations=correlations,
        mean_kappas=tuple(_mean_of_defined(row) for row in kappas),
        copies=tuple(group for group in groups if len(group) > 1),
        eligible=tuple(eligible),
        subset_count=subset_count,
        by_mean=tuple(propose(subset) for subset in subsets_by_mean),
        by_largest=tuple(propose(subset) for subset in subsets_by_largest),
        reason="" if subset_count else _explain_no_proposal(qualities, len(eligible), size),
    )


def _mean_of_defined(kappas: Kappas) -> float | None:
    """Return the mean of the values that are not NaN; None if all are."""
    defined = kappas[np.isfinite(kappas)]
    return float(defined.mean()) if len(defined) else None


def _explain_no_proposal(qualities: Sequence[Quality], eligible_count: int, size: int) -> str:
    """Return why the eligible candidates are too few for a panel, as a clause without a full stop."""
    passed_count = sum(candidate.passes for candidate in qualities)
    if len(qualities) < size:
        message = TOO_FEW_CANDIDATES
    elif passed_count > eligible_count:
        message = TOO_FEW_WITHOUT_COPIES
    else:
        message = TOO_FEW_ABOVE_FLOOR
    return _(message) % {
        "size": size,
        "candidates": len(qualities),
        "passed": passed_count,
        "eligible": eligible_count,
    }


def _build_proposal(
    subset: Subset,
    votes: Votes,
    reference: ReferenceGrades,
    correlations: Kappas,
    costs: Sequence[float | None],
) -> Proposal:
    """Measure a panel: the accuracy of its majority with and without each member, its independence, and its cost."""
    members = subset.members
    # The number of members is odd, so there are no ties.
    majority = 2 * votes[list(members)].sum(axis=0, dtype=np.int64) > len(members)
    remaining_members = [[member for member in members if member != absent] for absent in members]
    correlation = independence.mean_between(correlations, members)
    member_costs = [costs[member] for member in members]
    known_costs = [cost for cost in member_costs if cost is not None]
    return Proposal(
        subset=subset,
        correlation=correlation,
        effective=independence.effective_votes(len(members), correlation),
        majority=quality.balanced_accuracy(majority.astype(np.int8), reference),
        accuracies_without=tuple(_balanced_accuracy_with_ties(votes[rows], reference) for rows in remaining_members),
        cost=sum(known_costs) if len(known_costs) == len(members) else None,
    )


def _balanced_accuracy_with_ties(votes: Votes, reference: ReferenceGrades) -> float | None:
    """Return the balanced accuracy of the majority of an even number of votes; a tie counts as half correct.

    Returns None if the reference lacks one of the two classes.
    """
    is_relevant = reference == 1
    is_not_relevant = reference == 0
    if not (is_relevant.any() and is_not_relevant.any()):
        return None
    yes_votes = votes.sum(axis=0, dtype=np.int64)
    # For each pair 1 if the majority says yes, 0 if it says no, and 0.5 if the votes tie.
    decisions = np.where(2 * yes_votes == len(votes), 0.5, 2 * yes_votes > len(votes))
    recall_of_relevant = decisions[is_relevant].mean()
    recall_of_not_relevant = 1 - decisions[is_not_relevant].mean()
    return float((recall_of_relevant + recall_of_not_relevant) / 2)
