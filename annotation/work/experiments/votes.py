"""Votes in the experiment arms, and measures of each arm. Pure.

Shares have exact intervals (Clopper-Pearson), all other measures a bootstrap over items. An undefined
value is None with its reason. A vote is relevant or not: relevant from the collection's grade
`relevant_from` on.
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

RESAMPLES = 400  # With 20,000 votes they take about a second.
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
    """A person's current vote on an item. `arm`: shown, hidden, reveal; `step`: first (before the reveal), final."""

    item: int
    person: int
    arm: str
    step: str
    relevant: bool
    truth: bool | None = None  # Whether the reference grade is relevant; None without one.
    seconds: float | None = None
    # False for a first vote that was repeated after its author had seen the debate.
    blind: bool = True
    grade: int = 0


@dataclass(frozen=True, slots=True)
class Moment:
    """A point at which a vote is cast: arm and step."""

    key: str
    arm: str
    step: str
    blind: bool  # The debate was not seen before the vote.


MOMENTS = (
    Moment("hidden", HIDDEN, "final", True),
    Moment("reveal-first", REVEAL, "first", True),
    Moment("reveal-final", REVEAL, "final", False),
    Moment("shown", SHOWN, "final", False),
)


@dataclass(frozen=True, slots=True)
class ArmVotes:
    """Measures of the votes at one moment."""

    moment: Moment
    items: int
    votes: int
    people: int
    agreement: Statistic  # Krippendorff's alpha over items with at least two votes.
    fleiss: Statistic  # Fleiss' kappa over items with equally many votes, from any people.
    percent: Statistic
    prevalence: float | None
    accuracy: Statistic
    recall_relevant: Statistic
    recall_not_relevant: Statistic
    balanced_accuracy: Statistic  # The mean of both recalls (bAcc).
    seconds: Statistic  # The median; for the final vote of the reveal arm, the time since the reveal.


def votes_at(moment: Moment, votes: Iterable[Vote]) -> list[Vote]:
    """Return the votes of a moment; first votes only if they are blind."""
    at_step = [vote for vote in votes if vote.arm == moment.arm and vote.step == moment.step]
    return [vote for vote in at_step if vote.blind or not moment.blind]


def side_by_side(votes: Sequence[Vote], *, bootstrap: int = RESAMPLES) -> list[ArmVotes]:
    """Return the measures of each moment, also of those without votes."""
    return [measure_moment(moment, votes_at(moment, votes), bootstrap=bootstrap) for moment in MOMENTS]


def measure_moment(moment: Moment, votes: Sequence[Vote], *, bootstrap: int = RESAMPLES) -> ArmVotes:
    """Measure the agreement and accuracy of these votes."""
    # People x items: 1 for relevant, 0 for not, MISSING without a vote.
    people, rows = np.unique([vote.person for vote in votes], return_inverse=True)
    items, columns = np.unique([vote.item for vote in votes], return_inverse=True)
    grades = np.full((len(people), len(items)), MISSING, dtype=np.int16)
    grades[rows, columns] = [vote.relevant for vote in votes]
    agreement = group_agreement(grades, bootstrap=bootstrap)
    referenced = [vote for vote in votes if vote.truth is not None]
    relevant, not_relevant = ([vote for vote in referenced if vote.truth is label] for label in (True, False))
    return ArmVotes(
        moment=moment,
        items=len(items),
        votes=len(votes),
        people=len(people),
        agreement=agreement.kappa,
        fleiss=fleiss_kappa(grades, bootstrap=bootstrap)[0],
        percent=agreement.percent,
        prevalence=agreement.prevalence,
        accuracy=share_statistic([vote.relevant is vote.truth for vote in referenced], NO_GOLD if votes else NO_VOTE),
        recall_relevant=share_statistic([vote.relevant for vote in relevant], NO_CLASS if votes else NO_VOTE),
        recall_not_relevant=share_statistic(
            [not vote.relevant for vote in not_relevant], NO_CLASS if votes else NO_VOTE
        ),
        balanced_accuracy=bootstrap_statistic(
            NO_BOTH if votes else NO_VOTE, measure_items(balanced_accuracy, referenced), bootstrap=bootstrap
        ),
        seconds=bootstrap_statistic(NO_TIME, measure_items(median_seconds, list_timed(votes)), bootstrap=bootstrap),
    )


# From weights of the items (resamples x items) to a value for each resample; NaN where it is undefined.
Measure = Callable[[Floats], Floats]
# From votes, and the position of each vote's item, to a measure.
VoteMeasure = Callable[[Sequence[Vote], NDArray[np.intp]], Measure]


def measure_items(make: VoteMeasure, votes: Sequence[Vote]) -> tuple[Measure, int]:
    """Return a measure of votes, and the number of their items, as a term of `bootstrap_statistic`."""
    items, owners = np.unique([vote.item for vote in votes], return_inverse=True)
    return make(votes, owners), len(items)


def bootstrap_statistic(reason: str, *terms: tuple[Measure, int], bootstrap: int = RESAMPLES) -> Statistic:
    """Return the first measure, minus the second if there are two, with its 95% bootstrap interval.

    A term is a measure and the number of its items; the items of each term are resampled independently.
    There is no interval where a term has one item. `reason`: why the measure is undefined. The statistic's
    n is the number of items in all terms.
    """
    n = sum(items for _measure, items in terms)
    # Weights of 1 count every item once.
    values = [float(measure(np.ones((1, items)))[0]) for measure, items in terms if items]
    if len(values) < len(terms) or not np.isfinite(value := values[0] - sum(values[1:])):
        return Statistic(None, None, None, n, reason)
    if min(items for _measure, items in terms) < 2 or not bootstrap:
        return Statistic(value, None, None, n, None)
    # A seed for each term, because with one seed both terms would draw the same positions and vary together.
    samples = [
        np.concatenate(
            [
                measure(weights.astype(float))
                for weights in draw_resamples(np.ones(items, dtype=np.int64), bootstrap, seed)
            ]
        )
        for seed, (measure, items) in enumerate(terms)
    ]
    low, high = (float(bound[0]) for bound in percentile_interval((samples[0] - sum(samples[1:]))[:, None]))
    # No interval where too few resamples have a value.
    has_bounds = np.isfinite(low) and np.isfinite(high)
    return Statistic(value, low if has_bounds else None, high if has_bounds else None, n, None)


def accuracy(votes: Sequence[Vote], owners: NDArray[np.intp]) -> Measure:
    """Return the share of right votes; all votes have a reference grade."""
    right, counts = np.bincount(owners, [vote.relevant is vote.truth for vote in votes]), np.bincount(owners)
    return lambda weights: safe_ratio(weights @ right, weights @ counts)


def balanced_accuracy(votes: Sequence[Vote], owners: NDArray[np.intp]) -> Measure:
    """Return the mean of the recalls of both classes; all votes have a reference grade."""
    reference = np.array([vote.truth for vote in votes], dtype=bool)
    relevant = np.array([vote.relevant for vote in votes], dtype=bool)
    counts = [np.bincount(owners, reference == side) for side in (False, True)]
    right = [np.bincount(owners, (reference == side) & (relevant == side)) for side in (False, True)]
    return lambda weights: np.mean([safe_ratio(weights @ right[k], weights @ counts[k]) for k in (0, 1)], axis=0)


def safe_ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Divide; NaN where the denominator is not positive."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(denominator > 0, numerator / denominator, np.nan)


def list_timed(votes: Iterable[Vote]) -> list[Vote]:
    """Return the votes whose time was measured."""
    return [vote for vote in votes if vote.seconds is not None]


def median_seconds(votes: Sequence[Vote], owners: NDArray[np.intp]) -> Measure:
    """Return the median seconds of a vote; votes count as often as their item was drawn."""
    # The median, because a few long pauses would dominate the mean.
    return repeated_median(np.array([vote.seconds for vote in votes], dtype=float), owners)


def repeated_median(values: Floats, owners: NDArray[np.intp]) -> Measure:
    """Return the median of values that count as often as the item they belong to was drawn."""

    def medians(weights: Floats) -> Floats:
        return np.array([np.median(np.repeat(values, row[owners].astype(int))) for row in weights])

    return medians


def debate_gain(make: VoteMeasure, votes: Sequence[Vote], *, bootstrap: int = RESAMPLES) -> Statistic:
    """Return a measure with the debate shown minus hidden, over votes with a reference grade."""
    referenced = [vote for vote in votes if vote.truth is not None]
    return _compare_arms(make, referenced, ("shown", "hidden"), NO_REFERENCE_IN_ONE, bootstrap)


def seconds_saved(votes: Sequence[Vote], *, bootstrap: int = RESAMPLES) -> Statistic:
    """Return the median seconds with the debate hidden minus the median with it shown."""
    return _compare_arms(median_seconds, list_timed(votes), ("hidden", "shown"), NO_TWO_ARMS, bootstrap)


def _compare_arms(
    make: VoteMeasure, votes: Sequence[Vote], keys: tuple[str, str], missing: str, bootstrap: int
) -> Statistic:
    """Return a measure at the first of two moments minus the second; `missing`: the reason where one has no votes."""
    terms = [
        measure_items(make, votes_at(next(moment for moment in MOMENTS if moment.key == key), votes)) for key in keys
    ]
    reason = NO_BOTH if all(items for _measure, items in terms) else missing
    return bootstrap_statistic(reason, *terms, bootstrap=bootstrap)


# A flip is a final vote that differs (relevant or not) from the same person's blind vote on the same
# item. Its side is that of the final vote: `for` is relevant, `against` is not relevant. A vote is right
# where it agrees with the reference grade.


@dataclass(frozen=True, slots=True)
class Flips:
    """Counts and shares of flips among `n` couples of votes, `known` of them with a reference grade."""

    n: int
    known: int
    right_right: int
    right_wrong: int
    wrong_right: int
    wrong_wrong: int
    flipped: Statistic  # The share of flips among all couples, with a reference grade or without.
    right_to_wrong: Statistic
    wrong_to_right: Statistic


def paired_votes(votes: Iterable[Vote]) -> list[tuple[Vote, Vote]]:
    """Return the first and final votes of each person on items in the reveal arm whose first vote was blind."""
    votes = [vote for vote in votes if vote.arm == "reveal"]
    firsts = {(vote.item, vote.person): vote for vote in votes if vote.step == "first" and vote.blind}
    finals = [vote for vote in votes if vote.step == "final" and (vote.item, vote.person) in firsts]
    return [
        (firsts[vote.item, vote.person], vote) for vote in sorted(finals, key=lambda vote: (vote.item, vote.person))
    ]


def flip_table(votes: Sequence[tuple[Vote, Vote]]) -> tuple[dict[str, Flips], dict[int, Flips]]:
    """Return the flips of first and final votes by side, and by person (assessor)."""
    people = sorted({final.person for _, final in votes})
    by_side = {
        # Somebody whose first vote is "not relevant" can only flip to "for".
        "for": count_flips([(first, final) for first, final in votes if not first.relevant]),
        "against": count_flips([(first, final) for first, final in votes if first.relevant]),
    }
    by_person = {
        person: count_flips([(first, final) for first, final in votes if final.person == person]) for person in people
    }
    return by_side, by_person


def count_flips(votes: Sequence[tuple[Vote, Vote]]) -> Flips:
    """Count the flips of first and final votes."""
    referenced = [(first, final) for first, final in votes if final.truth is not None]
    to_wrong = [final.relevant is not final.truth for first, final in referenced if first.relevant is final.truth]
    to_right = [final.relevant is final.truth for first, final in referenced if first.relevant is not final.truth]
    return Flips(
        n=len(votes),
        known=len(referenced),
        right_right=len(to_wrong) - sum(to_wrong),
        right_wrong=sum(to_wrong),
        wrong_right=sum(to_right),
        wrong_wrong=len(to_right) - sum(to_right),
        flipped=share_statistic([first.relevant is not final.relevant for first, final in votes], NO_PAIR),
        right_to_wrong=share_statistic(to_wrong, NO_RIGHT),
        wrong_to_right=share_statistic(to_right, NO_WRONG),
    )
