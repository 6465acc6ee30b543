"""Choice of a panel from votes: floor, copies, sets of a size, their quality. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from django.utils.translation import gettext as _

from annotation.agreement.measures import Pairwise, Statistic, compute_measures
from annotation.agreement.resampling import MISSING
from annotation.quality.panels import independence, quality, subsets
from annotation.quality.panels.independence import Kappas
from annotation.quality.panels.quality import Floor, Groups, Quality, Truth, Votes
from annotation.quality.panels.subsets import SIZE, Subset
from charts.translation import gettext_noop

FEW_CANDIDATES = gettext_noop("there are %(candidates)s candidates: a panel has %(size)s")
FEW_ELIGIBLE = gettext_noop("%(eligible)s of %(candidates)s candidates are above the floor: a panel has %(size)s")
FEW_WITH_COPIES = gettext_noop(
    "%(eligible)s of %(candidates)s candidates are above the floor, %(passed)s with copies: a panel has %(size)s"
)


@dataclass(frozen=True, slots=True)
class Proposal:
    """Candidates as a panel, of whom more than half decide."""

    subset: Subset
    correlation: float | None  # Mean correlation of the members' errors on gold.
    effective: float | None  # Independent votes that all of them are worth.
    majority: Statistic  # Balanced accuracy of the majority on gold.
    without: tuple[float | None, ...]  # The same with each member in turn left out; a tie counts half.
    cost: float | None  # USD for a pair: all votes.

    @property
    def members(self) -> tuple[int, ...]:
        """Places of the candidates."""
        return self.subset.members


@dataclass(frozen=True, slots=True)
class PanelChoice:
    """Result of choosing a panel: all candidates' figures, in the given order."""

    pairs: int
    gold: tuple[int, int]  # Pairs with a reference grade: not relevant, relevant.
    qualities: tuple[Quality, ...]
    floor: Floor
    pairwise: tuple[Pairwise, ...]
    correlations: Kappas
    means: tuple[float | None, ...]  # Of each candidate's kappas with all others.
    copies: tuple[tuple[int, ...], ...]
    eligible: tuple[int, ...]  # Who passed the floor; of copies only the first.
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
    truth: Truth,
    *,
    costs: Sequence[float | None] = (),
    floor: float | None = None,
    bootstrap: int = 0,
    size: int = SIZE,
    alike: Groups = (),
) -> PanelChoice:
    """Measure the candidates and propose panels from them.

    Of copies the one that is given first may be proposed: give the preferred ones first.

    `votes`: candidates x pairs of 0 and 1; `truth`: the reference, MISSING where there is none. At
    least two candidates and one pair. `alike`: candidates that are known to be one model. Raises
    ValueError for more candidates above the floor than subsets.most_candidates.
    """
    pairwise = tuple(compute_measures(votes, bootstrap=bootstrap).pairwise)
    kappas = _kappa_matrix(pairwise, len(votes))
    groups = independence.group_copies(votes, truth, kappas, alike)
    found, bound = quality.measure_candidates(votes, truth, groups, floor=floor)
    # Of copies only one may sit on the panel: the first that passes.
    eligible = tuple(next((place for place in group if found[place].passes), -1) for group in groups)
    eligible = tuple(sorted(place for place in eligible if place >= 0))
    count, by_mean, by_largest = subsets.rank_subsets(kappas, eligible, size=size)
    # Too little gold for the floor is too little here: a few pairs would rank by luck.
    gold = np.full_like(truth, MISSING) if bound.no_gold else truth
    errors = independence.error_correlations(votes, gold)
    known = tuple(costs) or (None,) * len(votes)
    passed = sum(one.passes for one in found)
    few = FEW_WITH_COPIES if passed > len(eligible) else FEW_ELIGIBLE
    lack = {"eligible": len(eligible), "candidates": len(votes), "passed": passed, "size": size}
    build = partial(_build_proposal, votes=votes, truth=gold, errors=errors, costs=known)
    defined = [row[np.isfinite(row)] for row in kappas]  # The diagonal is NaN.
    return PanelChoice(
        pairs=votes.shape[1],
        gold=(int((truth == 0).sum()), int((truth == 1).sum())),
        qualities=tuple(found),
        floor=bound,
        pairwise=pairwise,
        correlations=errors,
        means=tuple(float(row.mean()) if len(row) else None for row in defined),
        copies=tuple(group for group in groups if len(group) > 1),
        eligible=eligible,
        sets=count,
        by_mean=tuple(map(build, by_mean)),
        by_largest=tuple(map(build, by_largest)),
        reason="" if count else _(FEW_CANDIDATES if len(votes) < size else few) % lack,
    )


def _kappa_matrix(pairwise: Sequence[Pairwise], size: int) -> Kappas:
    result = np.full((size, size), np.nan)
    for pair in pairwise:
        value = np.nan if pair.kappa.value is None else pair.kappa.value
        result[pair.a, pair.b] = result[pair.b, pair.a] = value
    return result


def _build_proposal(
    subset: Subset, votes: Votes, truth: Truth, errors: Kappas, costs: Sequence[float | None]
) -> Proposal:
    members = subset.members
    majority = 2 * votes[list(members)].sum(axis=0, dtype=np.int64) > len(members)  # Of an odd number of members.
    mean = independence.mean_between(errors, members)
    prices = [costs[place] for place in members]
    known = [price for price in prices if price is not None]
    rest = [[one for one in members if one != left] for left in members]
    return Proposal(
        subset=subset,
        correlation=mean,
        effective=independence.effective_votes(len(members), mean),
        majority=quality.balanced_accuracy(majority.astype(np.int8), truth),
        without=tuple(_balanced_with_ties(votes[some], truth) for some in rest),
        cost=sum(known) if len(known) == len(members) else None,
    )


# Of an even number a tie decides nothing, so it is worth half a right answer.
def _balanced_with_ties(votes: Votes, truth: Truth) -> float | None:
    """Balanced accuracy of the majority of an even number of votes, a tie half right."""
    yes = votes.sum(axis=0, dtype=np.int64)
    says_yes = np.where(2 * yes == len(votes), 0.5, 2 * yes > len(votes))
    if not ((truth == 0).any() and (truth == 1).any()):
        return None
    recalls = says_yes[truth == 1].mean(), 1 - says_yes[truth == 0].mean()
    return float(sum(recalls) / 2)
