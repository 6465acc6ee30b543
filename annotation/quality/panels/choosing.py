"""Choice of the judges of a panel: the most independent ones among those that are accurate enough.

The candidates are judges whose votes on the same pairs are stored. Everywhere in this module, a candidate is
identified by its position in these votes. The module computes and reads no database.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from django.utils.translation import gettext as _

from annotation.agreement.measures import Pairwise, Statistic, compute_measures
from annotation.agreement.resampling import MISSING
from annotation.quality.panels import independence, quality, subsets
from annotation.quality.panels.independence import CandidateMatrix
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


class ReferenceCounts(NamedTuple):
    """Numbers of pairs with a reference grade, by class."""

    not_relevant: int
    relevant: int


@dataclass(frozen=True, slots=True)
class Proposal:
    """A panel that is proposed. It gives each pair the label for which more than half of its members vote."""

    subset: Subset  # The members, and the kappas between them.
    # Mean correlation between the members' errors; None if a member makes no errors, or with too few reference
    # grades.
    error_correlation: float | None
    effective_votes: float | None  # Number of independent votes that the panel is worth; None without a correlation.
    balanced_accuracy: Statistic  # Balanced accuracy of the panel's labels.
    # For each member, the balanced accuracy of the labels of all other members; None if it is undefined.
    accuracies_without_member: tuple[float | None, ...]
    cost_per_pair: float | None  # USD for the votes on one pair; None if the price of a member is unknown.

    @property
    def members(self) -> tuple[int, ...]:
        """The candidates that are members of the panel."""
        return self.subset.members


@dataclass(frozen=True, slots=True)
class CandidateMeasures:
    """The quality of the candidates, and the similarity between them."""

    pair_count: int  # Number of pairs on which all candidates voted.
    reference_counts: ReferenceCounts
    qualities: tuple[Quality, ...]  # The quality of each candidate.
    floor: Floor  # The quality that a candidate must reach.
    agreements: tuple[Pairwise, ...]  # The agreement of every two candidates.
    error_correlations: CandidateMatrix  # The correlation between the errors of every two candidates.
    mean_kappas: tuple[float | None, ...]  # Mean kappa of each candidate with the others; None if no kappa is defined.
    copy_groups: tuple[tuple[int, ...], ...]  # Groups of two or more candidates that are copies of each other.


@dataclass(frozen=True, slots=True)
class PanelProposals:
    """The proposed panels, which are the best of those that the eligible candidates can form."""

    eligible: tuple[int, ...]  # Candidates above the floor, but only one candidate of each group of copies.
    panel_count: int  # Number of panels of the requested size that the eligible candidates can form.
    by_mean_kappa: tuple[Proposal, ...]  # The panels with the lowest mean kappa between members, lowest first.
    by_largest_kappa: tuple[Proposal, ...]  # The panels whose two most similar members have the lowest kappa.
    no_proposal_reason: str  # Empty if a panel is proposed.

    @property
    def proposed(self) -> Proposal | None:
        """The panel with the lowest mean kappa; None if no panel is proposed."""
        return self.by_mean_kappa[0] if self.by_mean_kappa else None


class PanelChoice(NamedTuple):
    """The measures of the candidates, and the panels that are proposed on their basis."""

    measures: CandidateMeasures
    panels: PanelProposals


def choose_judges(
    votes: Votes,
    reference: ReferenceGrades,
    *,
    vote_costs: Sequence[float | None] = (),
    floor_value: float | None = None,
    resample_count: int = 0,
    size: int = SIZE,
    same_model_groups: Groups = (),
) -> PanelChoice:
    """Measure the candidates, and propose panels of those that are above the floor.

    1. Measure the agreement of every two candidates, and group those that are copies of each other.
    2. Measure the quality of each candidate, and compare it with the floor.
    3. Select the eligible candidates.
    4. Rank the panels that they can form by the kappas between the members, and measure the best panels.

    - `votes` has a row for each of at least two candidates and a column for each of one or more pairs. Values: 0 and 1.
    - `reference` contains the reference grade of each pair as 0 or 1, or MISSING.
    - `vote_costs` contains the cost of a vote of each candidate in USD, None if it is unknown. Empty: all are unknown.
    - `floor_value` replaces the floor. None: the floor is derived from the candidates.
    - `resample_count` is the number of bootstrap resamples for the intervals of the kappas. 0: no intervals.
    - `size` is the number of members of a panel, which is odd.
    - `same_model_groups` contains groups of candidates that are the same model, and therefore copies however they vote.

    Raises ValueError if the number of eligible candidates exceeds subsets.most_candidates(size).
    """
    # 1. Agreements and copies.
    agreements = tuple(compute_measures(votes, bootstrap=resample_count).pairwise)
    kappas = np.full((len(votes), len(votes)), np.nan)  # The diagonal stays NaN.
    for agreement in agreements:
        kappa = np.nan if agreement.kappa.value is None else agreement.kappa.value
        kappas[agreement.a, agreement.b] = kappa
        kappas[agreement.b, agreement.a] = kappa
    groups = independence.group_copies(votes, reference, kappas, same_model_groups)

    # 2. Quality.
    qualities, floor = quality.measure_candidates(votes, reference, groups, floor=floor_value)
    # With too few reference grades, the accuracies and error correlations of panels would be chance, so all grades are
    # treated as missing.
    usable_reference = np.full_like(reference, MISSING) if floor.no_gold_reason else reference

    # 3. Eligible candidates.
    eligible: list[int] = []
    for group in groups:
        passing = [candidate for candidate in group if qualities[candidate].passes]
        eligible += passing[:1]  # Of copies, only the first may be proposed.
    eligible.sort()

    # 4. Panels.
    ranked = subsets.rank_subsets(kappas, eligible, size=size)
    error_correlations = independence.error_correlations(votes, usable_reference)
    known_vote_costs = tuple(vote_costs) or (None,) * len(votes)

    def propose(subset: Subset) -> Proposal:
        return measure_panel(subset, votes, usable_reference, error_correlations, known_vote_costs)

    # Without the kappas that are not defined, such as that of a candidate with itself.
    defined_kappas = [candidate_kappas[np.isfinite(candidate_kappas)] for candidate_kappas in kappas]
    measures = CandidateMeasures(
        pair_count=votes.shape[1],
        reference_counts=ReferenceCounts(
            not_relevant=int((reference == 0).sum()), relevant=int((reference == 1).sum())
        ),
        qualities=tuple(qualities),
        floor=floor,
        agreements=agreements,
        error_correlations=error_correlations,
        mean_kappas=tuple(float(values.mean()) if len(values) else None for values in defined_kappas),
        copy_groups=tuple(group for group in groups if len(group) > 1),
    )
    panels = PanelProposals(
        eligible=tuple(eligible),
        panel_count=ranked.subset_count,
        by_mean_kappa=tuple(propose(subset) for subset in ranked.by_mean_kappa),
        by_largest_kappa=tuple(propose(subset) for subset in ranked.by_largest_kappa),
        no_proposal_reason="" if ranked.subset_count else _explain_no_proposal(qualities, len(eligible), size),
    )
    return PanelChoice(measures, panels)


def _explain_no_proposal(qualities: Sequence[Quality], eligible_count: int, size: int) -> str:
    """Return a clause without a full stop that says why the eligible candidates are too few for a panel."""
    passed_count = sum(candidate_quality.passes for candidate_quality in qualities)
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


def measure_panel(
    subset: Subset,
    votes: Votes,
    reference: ReferenceGrades,
    error_correlations: CandidateMatrix,
    vote_costs: Sequence[float | None],
) -> Proposal:
    """Measure a panel: the accuracy of its labels with and without each member, its independence, and its cost."""
    members = subset.members
    # The number of members is odd, so the votes cannot tie.
    majority_labels = 2 * votes[list(members)].sum(axis=0, dtype=np.int64) > len(members)
    panels_without_one = [[member for member in members if member != absent] for absent in members]
    correlation = independence.mean_between(error_correlations, members)
    known_costs = [cost for member in members if (cost := vote_costs[member]) is not None]
    return Proposal(
        subset=subset,
        error_correlation=correlation,
        effective_votes=independence.effective_votes(len(members), correlation),
        balanced_accuracy=quality.balanced_accuracy(majority_labels.astype(np.int8), reference),
        accuracies_without_member=tuple(
            _balanced_accuracy_with_ties(votes[remaining], reference) for remaining in panels_without_one
        ),
        cost_per_pair=sum(known_costs) if len(known_costs) == len(members) else None,
    )


def _balanced_accuracy_with_ties(votes: Votes, reference: ReferenceGrades) -> float | None:
    """Return the balanced accuracy of the majority of an even number of voters; a tie counts as half correct.

    Returns None if the reference grades do not contain both classes.
    """
    is_relevant = reference == 1
    is_not_relevant = reference == 0
    if not (is_relevant.any() and is_not_relevant.any()):
        return None
    yes_votes = votes.sum(axis=0, dtype=np.int64)
    # The label of each pair: 1 if the majority says yes, 0 if it says no, and 0.5 if the votes tie.
    labels = np.where(2 * yes_votes == len(votes), 0.5, 2 * yes_votes > len(votes))
    recall_of_relevant = labels[is_relevant].mean()
    recall_of_not_relevant = 1 - labels[is_not_relevant].mean()
    return float((recall_of_relevant + recall_of_not_relevant) / 2)
