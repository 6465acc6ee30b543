"""Votes of people in the arms, and what is said of each arm. Pure.

Shares have exact intervals (Clopper-Pearson), everything else a bootstrap over items; an undefined
value is None with its reason. Votes are relevant or not: grades from the collection's
`relevant_from` up.
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
NO_RIGHT = gettext_noop("no first vote was correct")
NO_WRONG = gettext_noop("no first vote was wrong")
NO_PAIR = gettext_noop("nobody has voted both times yet")
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
    # People x items of 0 and 1, MISSING where one did not vote on the other.
    people, rows = np.unique([vote.person for vote in votes], return_inverse=True)
    items, columns = np.unique([vote.item for vote in votes], return_inverse=True)
    grades = np.full((len(people), len(items)), MISSING, dtype=np.int16)
    grades[rows, columns] = [vote.relevant for vote in votes]
    agreed = group_agreement(grades, bootstrap=bootstrap)
    known = [vote for vote in votes if vote.truth is not None]
    yes, no = ([v for v in known if v.truth is truth] for truth in (True, False))
    return ArmVotes(
        moment=moment,
        items=len(items),
        votes=len(votes),
        people=len(people),
        agreement=agreed.kappa,
        fleiss=fleiss_kappa(grades, bootstrap=bootstrap)[0],
        percent=agreed.percent,
        prevalence=agreed.prevalence,
        accuracy=share_statistic([v.relevant is v.truth for v in known], NO_GOLD if votes else NO_VOTE),
        recall_relevant=share_statistic([v.relevant for v in yes], NO_CLASS if votes else NO_VOTE),
        recall_not_relevant=share_statistic([not v.relevant for v in no], NO_CLASS if votes else NO_VOTE),
        balanced_accuracy=bootstrap_statistic(
            NO_BOTH if votes else NO_VOTE, measured(balanced_accuracy, known), bootstrap=bootstrap
        ),
        seconds=bootstrap_statistic(NO_TIME, measured(median_seconds, list_timed(votes)), bootstrap=bootstrap),
    )


# Weights of the items (resamples x items) to one value for each row; NaN where it is undefined.
Measure = Callable[[Floats], Floats]
# Builds one from votes and the place of each vote's item.
VoteMeasure = Callable[[Sequence[Vote], NDArray[np.intp]], Measure]


def measured(make: VoteMeasure, votes: Sequence[Vote]) -> tuple[Measure, int]:
    """Return a measure of votes as a term of `bootstrap_statistic`: items are drawn, with all their votes."""
    items, owners = np.unique([vote.item for vote in votes], return_inverse=True)
    return make(votes, owners), len(items)


def bootstrap_statistic(reason: str, *terms: tuple[Measure, int], bootstrap: int = RESAMPLES) -> Statistic:
    """Return the first measure, less the second where there are two, with the 95% interval of the resamples.

    A term is a measure and the number of its items, each side resampled on its own; one item alone
    has no interval. `reason`: why it is undefined. n: the items of both.
    """
    n = sum(items for _measure, items in terms)
    # Weights of 1: every item once.
    values = [float(measure(np.ones((1, items)))[0]) for measure, items in terms if items]
    if len(values) < len(terms) or not np.isfinite(value := values[0] - sum(values[1:])):
        return Statistic(None, None, None, n, reason)
    if min(items for _measure, items in terms) < 2 or not bootstrap:
        return Statistic(value, None, None, n, None)
    # A seed for each: with the same one, both sides would draw the same places and vary together.
    samples = [
        np.concatenate(
            [measure(w.astype(float)) for w in draw_resamples(np.ones(items, dtype=np.int64), bootstrap, seed)]
        )
        for seed, (measure, items) in enumerate(terms)
    ]
    low, high = (float(bound[0]) for bound in percentile_interval((samples[0] - sum(samples[1:]))[:, None]))
    # None where too few resamples have a value.
    has_bounds = np.isfinite(low) and np.isfinite(high)
    return Statistic(value, low if has_bounds else None, high if has_bounds else None, n, None)


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
    """A measure with the debate shown minus hidden; only votes with a reference count."""
    known = [vote for vote in votes if vote.truth is not None]
    return _compare_arms(make, known, ("shown", "hidden"), NO_REFERENCE_IN_ONE, bootstrap)


def seconds_saved(votes: Sequence[Vote], *, bootstrap: int = RESAMPLES) -> Statistic:
    """The median seconds with the debate hidden minus those with it shown."""
    return _compare_arms(median_seconds, list_timed(votes), ("hidden", "shown"), NO_TWO_ARMS, bootstrap)


def _compare_arms(
    make: VoteMeasure, votes: Sequence[Vote], keys: tuple[str, str], missing: str, bootstrap: int
) -> Statistic:
    """A measure at the first of two moments minus the same at the second; `missing`: why, where one has no vote."""
    terms = [measured(make, votes_at(next(moment for moment in MOMENTS if moment.key == key), votes)) for key in keys]
    reason = NO_BOTH if all(items for _measure, items in terms) else missing
    return bootstrap_statistic(reason, *terms, bootstrap=bootstrap)


# A flip is a final vote that says otherwise (relevant or not) than the same person's blind vote on
# the same item; its side is the one that it goes to: `for` ends relevant, `against` not relevant.
# Right is what the reference says.


@dataclass(frozen=True, slots=True)
class Flips:
    """`n` votes, `known` of them with a reference; counts and shares."""

    n: int
    known: int
    right_right: int
    right_wrong: int
    wrong_right: int
    wrong_wrong: int
    flipped: Statistic  # Of all votes, with a reference or not.
    right_to_wrong: Statistic
    wrong_to_right: Statistic


def both_votes(votes: Iterable[Vote]) -> list[tuple[Vote, Vote]]:
    """First and final vote of each person on reveal items, where the first was blind."""
    votes = [vote for vote in votes if vote.arm == "reveal"]
    firsts = {(vote.item, vote.person): vote for vote in votes if vote.step == "first" and vote.blind}
    finals = [vote for vote in votes if vote.step == "final" and (vote.item, vote.person) in firsts]
    return [
        (firsts[vote.item, vote.person], vote) for vote in sorted(finals, key=lambda vote: (vote.item, vote.person))
    ]


def flip_table(found: Sequence[tuple[Vote, Vote]]) -> tuple[dict[str, Flips], dict[int, Flips]]:
    """The flips of first and final votes, by the flip's direction and by person (assessor)."""
    people = sorted({final.person for _, final in found})
    by_side = {
        # A flip goes away from the first vote: who began with "not relevant" can only end "for".
        "for": count_flips([both for both in found if not both[0].relevant]),
        "against": count_flips([both for both in found if both[0].relevant]),
    }
    return by_side, {one: count_flips([both for both in found if both[1].person == one]) for one in people}


def count_flips(found: Sequence[tuple[Vote, Vote]]) -> Flips:
    """Counts and shares of first and final votes."""
    known = [(first, final) for first, final in found if final.truth is not None]
    to_wrong = [final.relevant is not final.truth for first, final in known if first.relevant is final.truth]
    to_right = [final.relevant is final.truth for first, final in known if first.relevant is not final.truth]
    return Flips(
        n=len(found),
        known=len(known),
        right_right=len(to_wrong) - sum(to_wrong),
        right_wrong=sum(to_wrong),
        wrong_right=sum(to_right),
        wrong_wrong=len(to_right) - sum(to_right),
        flipped=share_statistic([first.relevant is not final.relevant for first, final in found], NO_PAIR),
        right_to_wrong=share_statistic(to_wrong, NO_RIGHT),
        wrong_to_right=share_statistic(to_right, NO_WRONG),
    )
