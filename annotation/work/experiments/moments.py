"""Measures of the votes at each moment, and the gain of showing the debate instead of hiding it.

Shares have exact intervals (Clopper and Pearson). All other measures have intervals by a bootstrap over items. An
undefined measure has no value, but a reason. The module computes and reads no database.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from annotation.agreement.groups import group_agreement
from annotation.agreement.measures import Statistic, fleiss_kappa
from annotation.agreement.proportions import share_statistic
from annotation.agreement.resampling import MISSING
from annotation.work.experiments.resampled_measures import (
    RESAMPLE_COUNT,
    MeasureBuilder,
    balanced_accuracy_measure,
    build_term,
    median_seconds_measure,
    resample,
    resample_difference,
)
from annotation.work.experiments.votes import (
    MOMENT_BY_KEY,
    MOMENTS,
    Moment,
    Vote,
    referenced_votes,
    timed_votes,
    votes_at,
)
from charts.translation import gettext_noop

NO_VOTE = gettext_noop("no votes yet")
NO_REFERENCE = gettext_noop("no reference grade on these pairs")
NO_REFERENCE_IN_CLASS = gettext_noop("no pair with a reference grade in this class")
NO_REFERENCE_IN_ARM = gettext_noop("one of the two arms has no votes on pairs with a reference grade")
SINGLE_CLASS = gettext_noop("reference grades in one class only")
NO_TIME = gettext_noop("no time measured")
NO_TIME_IN_ARM = gettext_noop("one of the two arms has no measured time")


@dataclass(frozen=True, slots=True)
class MomentMeasures:
    """Measures of the votes at one moment."""

    moment: Moment
    item_count: int  # The number of items with votes.
    vote_count: int
    person_count: int  # The number of people who voted.
    krippendorff_alpha: Statistic  # Over items with at least two votes.
    fleiss_kappa: Statistic  # Over items with equally many votes, whichever people cast them.
    equal_vote_share: Statistic  # Share of equal votes among the pairs of votes on an item, averaged over items.
    prevalence: float | None  # Share of relevant votes on items with at least two votes; None without such items.
    accuracy: Statistic  # Share of right votes among those on items with a reference grade.
    recall_relevant: Statistic  # Share of right votes among those on relevant items.
    recall_not_relevant: Statistic  # Share of right votes among those on items that are not relevant.
    balanced_accuracy: Statistic  # Mean of both recalls.
    median_seconds: Statistic  # For the final votes of the arm "reveal", of the time since the reveal.


def measure_moments(votes: Sequence[Vote], *, resample_count: int = RESAMPLE_COUNT) -> list[MomentMeasures]:
    """Return the measures of each moment, including moments without votes."""
    return [measure_moment(moment, votes_at(moment, votes), resample_count=resample_count) for moment in MOMENTS]


def measure_moment(moment: Moment, votes: Sequence[Vote], *, resample_count: int = RESAMPLE_COUNT) -> MomentMeasures:
    """Measure the agreement, the accuracy and the time of votes that were all cast at one moment."""
    # A row for each person, a column for each item: 1 for relevant, 0 for not relevant, MISSING for no vote.
    people, rows = np.unique([vote.assessor_id for vote in votes], return_inverse=True)
    items, columns = np.unique([vote.item_id for vote in votes], return_inverse=True)
    grades = np.full((len(people), len(items)), MISSING, dtype=np.int16)
    grades[rows, columns] = [vote.relevant for vote in votes]
    agreement = group_agreement(grades, bootstrap=resample_count)
    kappa, _votes_per_item = fleiss_kappa(grades, bootstrap=resample_count)

    referenced = referenced_votes(votes)
    votes_on_relevant = [vote for vote in referenced if vote.reference]
    votes_on_not_relevant = [vote for vote in referenced if not vote.reference]
    # Without any votes, it is not the lack of reference grades that leaves a measure undefined.
    no_reference = NO_REFERENCE if votes else NO_VOTE
    no_reference_in_class = NO_REFERENCE_IN_CLASS if votes else NO_VOTE
    single_class = SINGLE_CLASS if votes else NO_VOTE
    balanced_accuracy = build_term(balanced_accuracy_measure, referenced)
    median_seconds = build_term(median_seconds_measure, timed_votes(votes))
    return MomentMeasures(
        moment=moment,
        item_count=len(items),
        vote_count=len(votes),
        person_count=len(people),
        krippendorff_alpha=agreement.kappa,
        fleiss_kappa=kappa,
        equal_vote_share=agreement.percent,
        prevalence=agreement.prevalence,
        accuracy=share_statistic([vote.is_right for vote in referenced], no_reference),
        recall_relevant=share_statistic([vote.is_right for vote in votes_on_relevant], no_reference_in_class),
        recall_not_relevant=share_statistic([vote.is_right for vote in votes_on_not_relevant], no_reference_in_class),
        balanced_accuracy=resample(balanced_accuracy, single_class, resample_count=resample_count),
        median_seconds=resample(median_seconds, NO_TIME, resample_count=resample_count),
    )


def debate_gain(
    build_measure: MeasureBuilder, votes: Sequence[Vote], *, resample_count: int = RESAMPLE_COUNT
) -> Statistic:
    """Return a measure of the votes with the debate shown minus the same measure with it hidden.

    Only votes on items with a reference grade are measured.
    """
    referenced = referenced_votes(votes)
    shown = build_term(build_measure, votes_at(MOMENT_BY_KEY["shown"], referenced))
    hidden = build_term(build_measure, votes_at(MOMENT_BY_KEY["hidden"], referenced))
    reason = SINGLE_CLASS if shown.item_count and hidden.item_count else NO_REFERENCE_IN_ARM
    return resample_difference(shown, hidden, reason, resample_count=resample_count)


def seconds_saved(votes: Sequence[Vote], *, resample_count: int = RESAMPLE_COUNT) -> Statistic:
    """Return the median seconds of a vote with the debate hidden minus the median with it shown."""
    timed = timed_votes(votes)
    hidden = build_term(median_seconds_measure, votes_at(MOMENT_BY_KEY["hidden"], timed))
    shown = build_term(median_seconds_measure, votes_at(MOMENT_BY_KEY["shown"], timed))
    return resample_difference(hidden, shown, NO_TIME_IN_ARM, resample_count=resample_count)
