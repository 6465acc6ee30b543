"""Votes of people in the arms, and what is said of each arm. Pure.

Shares have exact intervals (Clopper-Pearson), everything else a bootstrap over items; an undefined value is None with
its reason. Votes are relevant or not: grades from the collection's `relevant_from` up.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from annotation.agreement.groups import group_agreement
from annotation.agreement.measures import Statistic, fleiss_kappa
from annotation.agreement.proportions import share_statistic
from annotation.agreement.resampling import MISSING, Floats, draw_resamples, percentile_interval
from charts.translation import gettext_noop
from corpus.collections.arm_allocation import HIDDEN, REVEAL, SHOWN

RESAMPLES = 400  # As for kappas: 20,000 votes take about a second.
NO_VOTE = gettext_noop("no votes yet")
NO_GOLD = gettext_noop("no reference grade on these pairs")
NO_CLASS = gettext_noop("no pair with a reference grade in this class")
NO_REFERENCE_IN_ONE = gettext_noop("one of the two arms has no votes on pairs with a reference grade")
NO_BOTH = gettext_noop("reference grades in one class only")
NO_TIME = gettext_noop("no time measured")
NO_TWO_ARMS = gettext_noop("one of the two arms has no measured time")


@dataclass(frozen=True, slots=True)
class Vote:
    """A person's standing vote on an item. `arm`: shown, hidden, reveal; `step`: first (before the reveal), final."""

    item: int
    person: int
    arm: str
    step: str
    relevant: bool
    truth: bool | None = None  # The reference says relevant; None: there is none.
    seconds: float | None = None
    # False for a first vote that was given anew after its author had seen the debate.
    blind: bool = True
    grade: int = 0


@dataclass(frozen=True, slots=True)
class Moment:
    """A point at which a vote is cast: arm and step."""

    key: str
    arm: str
    step: str
    blind: bool  # No debate was seen.


MOMENTS = (
    Moment("hidden", HIDDEN, "final", True),
    Moment("reveal-first", REVEAL, "first", True),
    Moment("reveal-final", REVEAL, "final", False),
    Moment("shown", SHOWN, "final", False),
)


@dataclass(frozen=True, slots=True)
class ArmVotes:
    """Measures of the votes that were cast at one moment."""

    moment: Moment
    items: int
    votes: int
    people: int
    agreement: Statistic  # Krippendorff's alpha, over items with two votes and more.
    fleiss: Statistic  # Fleiss' kappa, over items with the same number of votes, whoever cast them.
    percent: Statistic
    prevalence: float | None
    accuracy: Statistic
    recall_relevant: Statistic
    recall_not_relevant: Statistic
    balanced_accuracy: Statistic  # The mean of both recalls (bAcc).
    seconds: Statistic  # The median; the final vote of the reveal arm counts from the reveal on.


def votes_at(moment: Moment, votes: Iterable[Vote]) -> list[Vote]:
    """The votes of a moment; first votes only where they were blind."""
    return [v for v in votes if v.arm == moment.arm and v.step == moment.step and (v.blind or not moment.blind)]


def side_by_side(votes: Sequence[Vote], *, bootstrap: int = RESAMPLES) -> list[ArmVotes]:
    """Measure each moment in a row of its own, also those without a vote."""
    return [measure_moment(moment, votes_at(moment, votes), bootstrap=bootstrap) for moment in MOMENTS]


def measure_moment(moment: Moment, votes: Sequence[Vote], *, bootstrap: int = RESAMPLES) -> ArmVotes:
    """Agreement and accuracy of these votes."""
    grades = vote_matrix(votes)
    agreed = group_agreement(grades, bootstrap=bootstrap)
    known = [vote for vote in votes if vote.truth is not None]
    yes, no = ([v for v in known if v.truth is truth] for truth in (True, False))
    return ArmVotes(
        moment=moment,
        items=len({vote.item for vote in votes}),
        votes=len(votes),
        people=len({vote.person for vote in votes}),
        agreement=agreed.kappa,
        fleiss=fleiss_kappa(grades, bootstrap=bootstrap)[0],
        percent=agreed.percent,
        prevalence=agreed.prevalence,
        accuracy=share_statistic([v.relevant is v.truth for v in known], NO_GOLD if votes else NO_VOTE),
        recall_relevant=share_statistic([v.relevant for v in yes], NO_CLASS if votes else NO_VOTE),
        recall_not_relevant=share_statistic([not v.relevant for v in no], NO_CLASS if votes else NO_VOTE),
        balanced_accuracy=over_items(balanced_accuracy, known, NO_BOTH if votes else NO_VOTE, bootstrap=bootstrap),
        seconds=over_items(median_seconds, list_timed(votes), NO_TIME, bootstrap=bootstrap),
    )


def vote_matrix(votes: Sequence[Vote]) -> NDArray[np.int16]:
    """People x items of 0 and 1, MISSING where one did not vote on the other."""
    people, rows = np.unique([vote.person for vote in votes], return_inverse=True)
    items, columns = np.unique([vote.item for vote in votes], return_inverse=True)
    found = np.full((len(people), len(items)), MISSING, dtype=np.int16)
    found[rows, columns] = [vote.relevant for vote in votes]
    return found


def _item_places(votes: Sequence[Vote]) -> NDArray[np.intp]:
    """The place of each vote's item among the items in the order of their ids."""
    return np.unique([vote.item for vote in votes], return_inverse=True)[1]


def _count_items(owners: NDArray[np.intp]) -> int:
    return int(owners.max(initial=-1)) + 1


# Weights of the items (resamples x items) to one value for each row; NaN where it is undefined.
Measure = Callable[[Floats], Floats]
# Builds one from votes and the place of each vote's item.
VoteMeasure = Callable[[Sequence[Vote], NDArray[np.intp]], Measure]


def over_items(make: VoteMeasure, votes: Sequence[Vote], reason: str, *, bootstrap: int) -> Statistic:
    """A measure of votes with its bootstrap interval: items are drawn, with all their votes."""
    owners = _item_places(votes)
    return bootstrap_statistic(make(votes, owners), _count_items(owners), reason, bootstrap=bootstrap)


def bootstrap_statistic(measure: Measure, items: int, reason: str, *, bootstrap: int) -> Statistic:
    """The value over all items once each, and the 95% interval of the resamples; one item alone has none."""
    if not items:
        return Statistic(None, None, None, 0, reason)
    # Weights of 1: every item once.
    value = float(measure(np.ones((1, items)))[0])
    if not np.isfinite(value):
        return Statistic(None, None, None, items, reason)
    low, high = (
        bootstrap_bounds(resample_measure(measure, items, bootstrap)) if items > 1 and bootstrap else (None, None)
    )
    return Statistic(value, low, high, items, None)


def resample_measure(measure: Measure, items: int, bootstrap: int, seed: int = 0) -> Floats:
    """The measure over each resample of the items."""
    return np.concatenate(
        [measure(w.astype(float)) for w in draw_resamples(np.ones(items, dtype=np.int64), bootstrap, seed)]
    )


def bootstrap_bounds(samples: Floats) -> tuple[float | None, float | None]:
    """The 95% interval, None where too few resamples have a value."""
    low, high = percentile_interval(samples[:, None])
    return (float(low[0]), float(high[0])) if np.isfinite(low[0]) and np.isfinite(high[0]) else (None, None)


def bootstrap_difference(
    a: Measure, a_items: int, b: Measure, b_items: int, reason: str, *, bootstrap: int = RESAMPLES
) -> Statistic:
    """`a` minus `b`, measured on different items: each side is resampled on its own. n: the items of both."""
    n = a_items + b_items
    if not a_items or not b_items:
        return Statistic(None, None, None, n, reason)
    value = float(a(np.ones((1, a_items)))[0] - b(np.ones((1, b_items)))[0])
    if not np.isfinite(value):
        return Statistic(None, None, None, n, reason)
    if min(a_items, b_items) < 2:
        return Statistic(value, None, None, n, None)
    # Two seeds: with the same one, both sides would draw the same places and vary together.
    low, high = bootstrap_bounds(
        resample_measure(a, a_items, bootstrap, 0) - resample_measure(b, b_items, bootstrap, 1)
    )
    return Statistic(value, low, high, n, None)


def accuracy(votes: Sequence[Vote], owners: NDArray[np.intp]) -> Measure:
    """The share of right votes, all with a reference."""
    right, known = np.bincount(owners, [vote.relevant is vote.truth for vote in votes]), np.bincount(owners)
    return lambda weights: safe_ratio(weights @ right, weights @ known)


def balanced_accuracy(votes: Sequence[Vote], owners: NDArray[np.intp]) -> Measure:
    """The mean of the recalls of both classes; all votes have a reference."""
    truth = np.array([vote.truth for vote in votes], dtype=bool)
    said = np.array([vote.relevant for vote in votes], dtype=bool)
    known = [np.bincount(owners, truth == side) for side in (False, True)]
    right = [np.bincount(owners, (truth == side) & (said == side)) for side in (False, True)]
    return lambda weights: np.mean([safe_ratio(weights @ right[k], weights @ known[k]) for k in (0, 1)], axis=0)


def safe_ratio(above: Floats, below: Floats) -> Floats:
    """NaN where there is nothing to divide by."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below > 0, above / below, np.nan)


def list_timed(votes: Iterable[Vote]) -> list[Vote]:
    """The votes whose time was measured."""
    return [vote for vote in votes if vote.seconds is not None]


def median_seconds(votes: Sequence[Vote], owners: NDArray[np.intp]) -> Measure:
    """The median of the seconds, where an item that was drawn twice counts its votes twice."""
    # Medians, because a few long pauses would rule a mean.
    return repeated_median(np.array([vote.seconds for vote in votes], dtype=float), owners)


def repeated_median(values: Floats, owners: NDArray[np.intp]) -> Measure:
    """The median of values that each count as often as the item that owns them was drawn."""

    def medians(weights: Floats) -> Floats:
        return np.array([np.median(np.repeat(values, row[owners].astype(int))) for row in weights])

    return medians


def debate_gain(make: VoteMeasure, votes: Sequence[Vote], *, bootstrap: int = RESAMPLES) -> Statistic:
    """A measure with the debate shown minus the same with it hidden; only votes with a reference count."""
    known = [vote for vote in votes if vote.truth is not None]
    return _compare_arms(make, known, ("shown", "hidden"), NO_REFERENCE_IN_ONE, bootstrap)


def seconds_saved(votes: Sequence[Vote], *, bootstrap: int = RESAMPLES) -> Statistic:
    """The median seconds with the debate hidden minus those with it shown."""
    return _compare_arms(median_seconds, list_timed(votes), ("hidden", "shown"), NO_TWO_ARMS, bootstrap)


def _compare_arms(
    make: VoteMeasure, votes: Sequence[Vote], keys: tuple[str, str], missing: str, bootstrap: int
) -> Statistic:
    """A measure at the first of two moments minus the same at the second; `missing`: why, where one has no vote."""
    sides = []
    for key in keys:
        mine = votes_at(next(moment for moment in MOMENTS if moment.key == key), votes)
        owners = _item_places(mine)
        sides.append((make(mine, owners), _count_items(owners)))
    (a, a_items), (b, b_items) = sides
    reason = NO_BOTH if a_items and b_items else missing
    return bootstrap_difference(a, a_items, b, b_items, reason, bootstrap=bootstrap)
