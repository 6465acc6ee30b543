"""Choice of a panel from votes: the floor, copies, subsets and their quality. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from django.utils.translation import gettext as _

from annotation.agreement.measures import Pairwise, Statistic, compute_measures
from annotation.agreement.resampling import MISSING
from annotation.quality.panels import independence, quality, subsets
from annotation.quality.panels.independence import Kappas
from annotation.quality.panels.quality import Floor, Groups, Quality, ReferenceGrades, Votes
from annotation.quality.panels.subsets import SIZE, Subset
from charts.translation import gettext_noop

FEW_CANDIDATES = gettext_noop("there are %(candidates)s candidates: a panel has %(size)s")
FEW_ELIGIBLE = gettext_noop("%(eligible)s of %(candidates)s candidates are above the floor: a panel has %(size)s")
FEW_WITH_COPIES = gettext_noop(
    "%(eligible)s of %(candidates)s candidates are above the floor, %(passed)s with copies: a panel has %(size)s"
)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed panel, on which more than half of the votes decide."""

    subset: Subset
    correlation: float | None  # Mean correlation of the members' errors on gold.
    effective: float | None  # Effective number of independent votes.
    majority: Statistic  # Balanced accuracy of the majority on gold.
    without: tuple[float | None, ...]  # Balanced accuracy without each member in turn; a tie counts half.
    cost: float | None  # USD for a pair, all votes together.

    @property
    def members(self) -> tuple[int, ...]:
        """Positions of the candidates."""
        return self.subset.members


@dataclass(frozen=True, slots=True)
class PanelChoice:
    """The choice of a panel, with the figures of all candidates in their order."""

    pairs: int
    gold: tuple[int, int]  # Pairs with a reference grade: not relevant, relevant.
    qualities: tuple[Quality, ...]
    floor: Floor
    pairwise: tuple[Pairwise, ...]
    correlations: Kappas
    means: tuple[float | None, ...]  # Mean kappa of each candidate with the others.
    copies: tuple[tuple[int, ...], ...]
    eligible: tuple[int, ...]  # Candidates above the floor; of copies only the first.
    sets: int
    by_mean: tuple[Proposal, ...]
    by_largest: tuple[Proposal, ...]
    reason: str  # Why there is no proposal; empty where there is one.

    @property
    def proposed(self) -> Proposal | None:
        """The set with the smallest mean kappa."""
        return self.by_mean[0] if self.by_mean else None


def choose_judges(
    votes: Votes,
    reference: ReferenceGrades,
    *,
    costs: Sequence[float | None] = (),
    floor: float | None = None,
    bootstrap: int = 0,
    size: int = SIZE,
    alike: Groups = (),
) -> PanelChoice:
    """Measure the candidates and propose panels. Of copies only the first above the floor may be proposed.

    `votes`: candidates x pairs of 0 and 1, at least two candidates and one pair; `reference`: the reference,
    MISSING where there is none; `alike`: groups of candidates that are the same model. Raises ValueError
    for more candidates above the floor than subsets.most_candidates.
    """
    pairwise = tuple(compute_measures(votes, bootstrap=bootstrap).pairwise)
    kappas = np.full((len(votes), len(votes)), np.nan)
    for pair in pairwise:
        value = np.nan if pair.kappa.value is None else pair.kappa.value
        kappas[pair.a, pair.b] = kappas[pair.b, pair.a] = value
    groups = independence.group_copies(votes, reference, kappas, alike)
    qualities, bound = quality.measure_candidates(votes, reference, groups, floor=floor)
    first_passing = (next((position for position in group if qualities[position].passes), -1) for group in groups)
    eligible = tuple(sorted(position for position in first_passing if position >= 0))
    count, by_mean, by_largest = subsets.rank_subsets(kappas, eligible, size=size)
    # Gold that is too little for the floor is too little here: the ranking would be luck.
    gold = np.full_like(reference, MISSING) if bound.no_gold else reference
    errors = independence.error_correlations(votes, gold)
    vote_costs = tuple(costs) or (None,) * len(votes)
    passed = sum(candidate.passes for candidate in qualities)
    reason = FEW_WITH_COPIES if passed > len(eligible) else FEW_ELIGIBLE
    counts = {"eligible": len(eligible), "candidates": len(votes), "passed": passed, "size": size}
    build = partial(_build_proposal, votes=votes, reference=gold, errors=errors, costs=vote_costs)
    defined = [row[np.isfinite(row)] for row in kappas]  # The diagonal is NaN.
    return PanelChoice(
        pairs=votes.shape[1],
        gold=(int((reference == 0).sum()), int((reference == 1).sum())),
        qualities=tuple(qualities),
        floor=bound,
        pairwise=pairwise,
        correlations=errors,
        means=tuple(float(row.mean()) if len(row) else None for row in defined),
        copies=tuple(group for group in groups if len(group) > 1),
        eligible=eligible,
        sets=count,
        by_mean=tuple(map(build, by_mean)),
        by_largest=tuple(map(build, by_largest)),
        reason="" if count else _(FEW_CANDIDATES if len(votes) < size else reason) % counts,
    )


def _build_proposal(
    subset: Subset, votes: Votes, reference: ReferenceGrades, errors: Kappas, costs: Sequence[float | None]
) -> Proposal:
    members = subset.members
    majority = 2 * votes[list(members)].sum(axis=0, dtype=np.int64) > len(members)  # The number is odd.
    mean = independence.mean_between(errors, members)
    prices = [costs[position] for position in members]
    known_prices = [price for price in prices if price is not None]
    remaining = [[member for member in members if member != absent] for absent in members]
    return Proposal(
        subset=subset,
        correlation=mean,
        effective=independence.effective_votes(len(members), mean),
        majority=quality.balanced_accuracy(majority.astype(np.int8), reference),
        without=tuple(_balanced_with_ties(votes[rows], reference) for rows in remaining),
        cost=sum(known_prices) if len(known_prices) == len(members) else None,
    )


def _balanced_with_ties(votes: Votes, reference: ReferenceGrades) -> float | None:
    """Return the balanced accuracy of the majority of an even number of votes; a tie counts as half correct."""
    yes = votes.sum(axis=0, dtype=np.int64)
    says_yes = np.where(2 * yes == len(votes), 0.5, 2 * yes > len(votes))
    if not ((reference == 0).any() and (reference == 1).any()):
        return None
    recalls = says_yes[reference == 1].mean(), 1 - says_yes[reference == 0].mean()
    return float(sum(recalls) / 2)
