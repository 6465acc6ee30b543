"""Votes in the experiment arms, and measures of each arm. Pure.

A vote is relevant if its grade is at least the collection's grade `relevant_from`, and right if it agrees with
the reference grade. Shares have exact intervals (Clopper-Pearson); all other measures have intervals by a
bootstrap over items. An undefined measure has the value None and a reason.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotation.agreement.groups import group_agreement
from annotation.agreement.measures import Statistic, fleiss_kappa
from annotation.agreement.proportions import share_statistic
from annotation.agreement.resampling import MISSING, Floats, draw_resamples, percentile_interval
from charts.translation import gettext_noop
from corpus.collections.arm_allocation import HIDDEN, REVEAL, SHOWN

RESAMPLES = 400  # With 20,000 votes they take about a second.
# Reasons why a measure is undefined.
NO_RIGHT_FIRST_VOTE = gettext_noop("no first vote was correct")
NO_WRONG_FIRST_VOTE = gettext_noop("no first vote was wrong")
NO_FINAL_VOTE = gettext_noop("nobody has voted both times yet")
NO_VOTE = gettext_noop("no votes yet")
NO_REFERENCE = gettext_noop("no reference grade on these pairs")
NO_REFERENCE_IN_CLASS = gettext_noop("no pair with a reference grade in this class")
NO_REFERENCE_IN_ARM = gettext_noop("one of the two arms has no votes on pairs with a reference grade")
SINGLE_CLASS = gettext_noop("reference grades in one class only")
NO_TIME = gettext_noop("no time measured")
NO_TIME_IN_ARM = gettext_noop("one of the two arms has no measured time")


@dataclass(frozen=True, slots=True)
class Vote:
    """A person's current vote on an item. The fields have the order of the columns of read_drawn_votes.sql."""

    item: int  # The primary key.
    person: int  # The primary key of the person's assessor.
    arm: str  # SHOWN, HIDDEN or REVEAL.
    step: str  # "first", before the reveal, or "final".
    relevant: bool
    reference: bool | None = None  # Whether the reference grade is relevant; None if the pair has none.
    seconds: float | None = None  # The time that the vote took; None if it was not measured.
    blind: bool = True  # False for a first vote that was repeated after its author had seen the debate.


@dataclass(frozen=True, slots=True)
class Moment:
    """A point at which a vote is cast, given by an arm and a step."""

    key: str
    arm: str
    step: str
    blind: bool  # Whether voters have not seen the debate.


MOMENTS = (
    Moment("hidden", HIDDEN, "final", True),
    Moment("reveal-first", REVEAL, "first", True),
    Moment("reveal-final", REVEAL, "final", False),
    Moment("shown", SHOWN, "final", False),
)
MOMENT_BY_KEY = {moment.key: moment for moment in MOMENTS}


@dataclass(frozen=True, slots=True)
class ArmVotes:
    """Measures of the votes at one moment."""

    moment: Moment
    items: int  # The number of items with votes.
    votes: int
    people: int
    agreement: Statistic  # Krippendorff's alpha over items with at least two votes.
    fleiss: Statistic  # Fleiss' kappa over items with equally many votes, from any people.
    percent: Statistic  # The share of equal votes among all pairs of votes on the same item, averaged over items.
    prevalence: float | None  # The share of relevant votes on items with at least two votes; None without such items.
    accuracy: Statistic  # The share of right votes among those with a reference grade.
    recall_relevant: Statistic  # The share of right votes on relevant pairs.
    recall_not_relevant: Statistic
    balanced_accuracy: Statistic  # The mean of both recalls (bAcc).
    seconds: Statistic  # The median; for the final vote of the reveal arm, the time since the reveal.


def votes_at(moment: Moment, votes: Iterable[Vote]) -> list[Vote]:
    """Return the votes at a moment, without votes that were not blind if those of the moment must be."""
    votes_at_step = [vote for vote in votes if vote.arm == moment.arm and vote.step == moment.step]
    return [vote for vote in votes_at_step if vote.blind or not moment.blind]


def measure_moments(votes: Sequence[Vote], *, bootstrap: int = RESAMPLES) -> list[ArmVotes]:
    """Return the measures of each moment, including moments without votes."""
    return [measure_moment(moment, votes_at(moment, votes), bootstrap=bootstrap) for moment in MOMENTS]


def measure_moment(moment: Moment, votes: Sequence[Vote], *, bootstrap: int = RESAMPLES) -> ArmVotes:
    """Measure the agreement, the accuracy and the time of these votes."""
    # People x items: 1 for relevant, 0 for not relevant, MISSING for no vote.
    people, rows = np.unique([vote.person for vote in votes], return_inverse=True)
    items, columns = np.unique([vote.item for vote in votes], return_inverse=True)
    grades = np.full((len(people), len(items)), MISSING, dtype=np.int16)
    grades[rows, columns] = [vote.relevant for vote in votes]
    agreement = group_agreement(grades, bootstrap=bootstrap)
    fleiss, _votes_per_item = fleiss_kappa(grades, bootstrap=bootstrap)

    referenced = [vote for vote in votes if vote.reference is not None]
    right_votes = [vote.relevant is vote.reference for vote in referenced]
    right_on_relevant = [vote.relevant for vote in referenced if vote.reference]
    right_on_not_relevant = [not vote.relevant for vote in referenced if not vote.reference]
    # Without any vote at all, missing votes and not missing reference grades are the reason.
    no_reference = NO_REFERENCE if votes else NO_VOTE
    no_class = NO_REFERENCE_IN_CLASS if votes else NO_VOTE
    single_class = SINGLE_CLASS if votes else NO_VOTE
    accuracy_term = build_term(balanced_accuracy, referenced)
    seconds_term = build_term(median_seconds, list_timed(votes))
    return ArmVotes(
        moment=moment,
        items=len(items),
        votes=len(votes),
        people=len(people),
        agreement=agreement.kappa,
        fleiss=fleiss,
        percent=agreement.percent,
        prevalence=agreement.prevalence,
        accuracy=share_statistic(right_votes, no_reference),
        recall_relevant=share_statistic(right_on_relevant, no_class),
        recall_not_relevant=share_statistic(right_on_not_relevant, no_class),
        balanced_accuracy=bootstrap_statistic(single_class, accuracy_term, bootstrap=bootstrap),
        seconds=bootstrap_statistic(NO_TIME, seconds_term, bootstrap=bootstrap),
    )


Measure = Callable[[Floats], Floats]
"""From the weights of the items (resamples x items) to the value in each resample, NaN where it is undefined."""
MeasureBuilder = Callable[[Sequence[Vote], NDArray[np.intp]], Measure]
"""From votes, and for each vote the position of its item among the weights, to a measure of these votes."""


class MeasureTerm(NamedTuple):
    """A measure, and the number of items over which it is resampled."""

    measure: Measure
    items: int


def build_term(build_measure: MeasureBuilder, votes: Sequence[Vote]) -> MeasureTerm:
    """Return the term of `bootstrap_statistic` for a measure of these votes."""
    items, item_positions = np.unique([vote.item for vote in votes], return_inverse=True)
    return MeasureTerm(build_measure(votes, item_positions), len(items))


def bootstrap_statistic(reason: str, *terms: MeasureTerm, bootstrap: int = RESAMPLES) -> Statistic:
    """Return the measure of one term, or the first minus the second of two, with its 95% bootstrap interval.

    The items of each term are resampled independently, `bootstrap` times. `n` of the statistic is the number of
    items of all terms. The statistic is undefined with `reason` if a term is, or has no items. There is no interval
    if a term has a single item, or if too few resamples have a value.
    """
    n = sum(term.items for term in terms)
    if not all(term.items for term in terms):
        return Statistic(None, None, None, n, reason)
    # The measures themselves count every item once, with a weight of 1.
    values = [float(term.measure(np.ones((1, term.items)))[0]) for term in terms]
    value = values[0] - sum(values[1:])
    if not np.isfinite(value):
        return Statistic(None, None, None, n, reason)
    if min(term.items for term in terms) < 2 or not bootstrap:
        return Statistic(value, None, None, n, None)
    # Each term has its own seed, because with one seed both terms would draw the same positions and vary together.
    samples = [_resample(term, bootstrap, seed) for seed, term in enumerate(terms)]
    differences = samples[0] - sum(samples[1:])
    lows, highs = percentile_interval(differences[:, None])
    low = float(lows[0])
    high = float(highs[0])
    if not (np.isfinite(low) and np.isfinite(high)):
        return Statistic(value, None, None, n, None)
    return Statistic(value, low, high, n, None)


def _resample(term: MeasureTerm, resamples: int, seed: int) -> Floats:
    """Return the value of the measure in each resample of its items."""
    chunks = draw_resamples(np.ones(term.items, dtype=np.int64), resamples, seed)
    return np.concatenate([term.measure(weights.astype(float)) for weights in chunks])


def accuracy(votes: Sequence[Vote], item_positions: NDArray[np.intp]) -> Measure:
    """Return the share of right votes. All votes have a reference grade."""
    right_counts = np.bincount(item_positions, [vote.relevant is vote.reference for vote in votes])
    vote_counts = np.bincount(item_positions)
    return lambda weights: safe_ratio(weights @ right_counts, weights @ vote_counts)


def balanced_accuracy(votes: Sequence[Vote], item_positions: NDArray[np.intp]) -> Measure:
    """Return the mean of the recalls of both classes. All votes have a reference grade."""
    references = np.array([vote.reference for vote in votes], dtype=bool)
    relevant = np.array([vote.relevant for vote in votes], dtype=bool)
    not_relevant_recall = _class_recall(~references, ~relevant, item_positions)
    relevant_recall = _class_recall(references, relevant, item_positions)
    return lambda weights: np.mean([not_relevant_recall(weights), relevant_recall(weights)], axis=0)


def _class_recall(
    is_in_class: NDArray[np.bool_], is_voted: NDArray[np.bool_], item_positions: NDArray[np.intp]
) -> Measure:
    """Return the recall of a class: of the votes on its items, the share that are for the class."""
    vote_counts = np.bincount(item_positions, is_in_class)
    right_counts = np.bincount(item_positions, is_in_class & is_voted)
    return lambda weights: safe_ratio(weights @ right_counts, weights @ vote_counts)


def safe_ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Divide elementwise; the result is NaN where the denominator is not positive."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(denominator > 0, numerator / denominator, np.nan)


def list_timed(votes: Iterable[Vote]) -> list[Vote]:
    """Return the votes whose time was measured."""
    return [vote for vote in votes if vote.seconds is not None]


def median_seconds(votes: Sequence[Vote], item_positions: NDArray[np.intp]) -> Measure:
    """Return the median time of a vote in seconds. All votes have a measured time."""
    # The median, because a few long pauses would dominate the mean.
    return repeated_median(np.array([vote.seconds for vote in votes], dtype=float), item_positions)


def repeated_median(values: Floats, item_positions: NDArray[np.intp]) -> Measure:
    """Return the median of values, each repeated as often as its item was drawn."""

    def medians(weights: Floats) -> Floats:
        return np.array([np.median(np.repeat(values, row[item_positions].astype(int))) for row in weights])

    return medians


def debate_gain(build_measure: MeasureBuilder, votes: Sequence[Vote], *, bootstrap: int = RESAMPLES) -> Statistic:
    """Return a measure with the debate shown minus the same measure with it hidden.

    Only votes on items with a reference grade are measured.
    """
    referenced = [vote for vote in votes if vote.reference is not None]
    return _compare_arms(build_measure, referenced, ("shown", "hidden"), NO_REFERENCE_IN_ARM, bootstrap)


def seconds_saved(votes: Sequence[Vote], *, bootstrap: int = RESAMPLES) -> Statistic:
    """Return the median seconds with the debate hidden minus the median with it shown."""
    return _compare_arms(median_seconds, list_timed(votes), ("hidden", "shown"), NO_TIME_IN_ARM, bootstrap)


def _compare_arms(
    build_measure: MeasureBuilder, votes: Sequence[Vote], keys: tuple[str, str], no_votes: str, bootstrap: int
) -> Statistic:
    """Return a measure at the first of two moments minus the same measure at the second.

    `keys` are those of the moments. `no_votes` is the reason if one of the moments has no votes.
    """
    terms = [build_term(build_measure, votes_at(MOMENT_BY_KEY[key], votes)) for key in keys]
    reason = SINGLE_CLASS if all(term.items for term in terms) else no_votes
    return bootstrap_statistic(reason, *terms, bootstrap=bootstrap)


class VotePair(NamedTuple):
    """The blind first vote and the final vote of a person on an item of the reveal arm."""

    first: Vote
    final: Vote

    @property
    def is_flip(self) -> bool:
        """Whether the final vote differs from the first."""
        return self.first.relevant is not self.final.relevant


@dataclass(frozen=True, slots=True)
class Flips:
    """Flips between the first and final votes of people on items.

    In the names of the four counts, the first word is about the first vote, and the second about the final vote:
    `right_wrong` counts the right first votes whose author then voted wrongly.
    """

    pairs: int  # First votes that have a final vote.
    referenced_pairs: int  # Those on items with a reference grade, which the four counts add up to.
    right_right: int
    right_wrong: int
    wrong_right: int
    wrong_wrong: int
    flipped: Statistic  # The share of flips among all pairs of votes, with a reference grade or without.
    right_to_wrong: Statistic  # The share of flips among the pairs whose first vote was right.
    wrong_to_right: Statistic  # The share of flips among the pairs whose first vote was wrong.


def paired_votes(votes: Iterable[Vote]) -> list[VotePair]:
    """Return the first and final votes of each person on items of the reveal arm, if the first vote was blind.

    The pairs are sorted by item and person.
    """
    reveal_votes = [vote for vote in votes if vote.arm == REVEAL]
    first_votes = {(vote.item, vote.person): vote for vote in reveal_votes if vote.step == "first" and vote.blind}
    final_votes = [vote for vote in reveal_votes if vote.step == "final" and (vote.item, vote.person) in first_votes]
    final_votes.sort(key=lambda vote: (vote.item, vote.person))
    return [VotePair(first_votes[vote.item, vote.person], vote) for vote in final_votes]


def flips_by_side(pairs: Sequence[VotePair]) -> dict[str, Flips]:
    """Return the flips by the side of the final vote: `for` if it is relevant, otherwise `against`."""
    return {
        # A person whose first vote was "not relevant" can only flip to "for".
        "for": count_flips([pair for pair in pairs if not pair.first.relevant]),
        "against": count_flips([pair for pair in pairs if pair.first.relevant]),
    }


def flips_by_person(pairs: Sequence[VotePair]) -> dict[int, Flips]:
    """Return the flips of each person, by the primary key of the person's assessor, in the order of these keys."""
    people = sorted({pair.final.person for pair in pairs})
    return {person: count_flips([pair for pair in pairs if pair.final.person == person]) for person in people}


def count_flips(pairs: Sequence[VotePair]) -> Flips:
    """Count the flips of these pairs of votes."""
    referenced = [pair for pair in pairs if pair.final.reference is not None]
    # Whether the person flipped, for each right and for each wrong first vote.
    flips_from_right = [pair.is_flip for pair in referenced if pair.first.relevant is pair.final.reference]
    flips_from_wrong = [pair.is_flip for pair in referenced if pair.first.relevant is not pair.final.reference]
    right_wrong = sum(flips_from_right)
    wrong_right = sum(flips_from_wrong)
    return Flips(
        pairs=len(pairs),
        referenced_pairs=len(referenced),
        right_right=len(flips_from_right) - right_wrong,
        right_wrong=right_wrong,
        wrong_right=wrong_right,
        wrong_wrong=len(flips_from_wrong) - wrong_right,
        flipped=share_statistic([pair.is_flip for pair in pairs], NO_FINAL_VOTE),
        right_to_wrong=share_statistic(flips_from_right, NO_RIGHT_FIRST_VOTE),
        wrong_to_right=share_statistic(flips_from_wrong, NO_WRONG_FIRST_VOTE),
    )
