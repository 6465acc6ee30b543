"""The paired study: two disjoint groups judge the same pairs with and without the debate (DREAM, table 3). Pure.

A pair is finished, and measured, when both groups have given all their votes on it. The label of a group is that of
most of its votes. For the difference between the groups, both are resampled on the same pairs.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from annotation.agreement.measures import ONE_GRADE, Statistic, fleiss_measure
from annotation.agreement.proportions import share_statistic
from annotation.agreement.resampling import Floats
from annotation.work.experiments.moments import NO_REFERENCE_IN_CLASS, SINGLE_CLASS
from annotation.work.experiments.resampled_measures import (
    RESAMPLE_COUNT,
    Measure,
    MeasureTerm,
    repeated_median_measure,
    resample,
    safe_ratio,
)
from charts.translation import gettext_noop

NO_PAIR = gettext_noop("no pair has all votes from both groups yet")
NO_REFERENCE = gettext_noop("no pair with a majority in both groups has a reference grade")
NO_TIME = gettext_noop("no pair has a measured time in both groups")
ONE_VOTE = gettext_noop("only one vote per pair, so agreement cannot be computed")


@dataclass(frozen=True, slots=True)
class ArmCell:
    """The votes of a group on a pair."""

    votes: tuple[bool, ...]  # Whether each vote is relevant.
    seconds: tuple[float, ...] = ()  # The times of the votes whose time was measured.

    @property
    def majority(self) -> bool | None:
        """Whether most votes are relevant; None for a tie."""
        relevant = sum(self.votes)
        return None if relevant * 2 == len(self.votes) else relevant * 2 > len(self.votes)


@dataclass(frozen=True, slots=True)
class JudgedPair:
    """A pair with the votes of both groups."""

    pair: int
    hidden: ArmCell
    shown: ArmCell
    reference: bool | None = None  # Whether the reference grade is relevant; None if the pair has none.


# From pairs and the name of a group, "hidden" or "shown", to a measure of its votes.
PairMeasureBuilder = Callable[[Sequence[JudgedPair], str], Measure]


@dataclass(frozen=True, slots=True)
class PairedRow:
    """A row of a paired study's table: the measures of one group, or the differences between both groups."""

    fleiss: Statistic
    recall_not_relevant: Statistic
    recall_relevant: Statistic
    balanced_accuracy: Statistic
    seconds: Statistic  # The median over pairs of the median time of the group's votes on a pair.


@dataclass(frozen=True, slots=True)
class PairedTable:
    """Results of the group with the debate hidden, of the group with it shown, and their difference."""

    pairs: int  # The number of finished pairs.
    referenced: int  # The number of pairs with a reference grade.
    ties: int  # The number of these that have a tie in a group, which the recalls leave out.
    hidden: PairedRow
    shown: PairedRow
    difference: PairedRow  # Shown minus hidden; for seconds hidden minus shown, the time that the debate saves.


def paired_table(judged: Sequence[JudgedPair], overlap: int, *, resample_count: int = RESAMPLE_COUNT) -> PairedTable:
    """Compute the table over the pairs that `overlap` people of each group judged."""
    # The groups are compared on the same pairs, so pairs that only one group has finished are left out.
    finished = [pair for pair in judged if len(pair.hidden.votes) == len(pair.shown.votes) == overlap]
    referenced = [pair for pair in finished if pair.reference is not None]
    # A pair with a tie in one group is left out for both, so that their recalls are over the same pairs.
    decided = [pair for pair in referenced if pair.hidden.majority is not None and pair.shown.majority is not None]
    no_class = NO_REFERENCE_IN_CLASS if decided else NO_REFERENCE
    single_class = SINGLE_CLASS if decided else NO_REFERENCE
    if not finished:
        no_kappa = NO_PAIR
    elif overlap < 2:
        no_kappa = ONE_VOTE
    else:
        no_kappa = ONE_GRADE
    timed = [pair for pair in finished if pair.hidden.seconds and pair.shown.seconds]

    def estimate(
        build_measure: PairMeasureBuilder, pairs: Sequence[JudgedPair], reason: str, arms: Sequence[str]
    ) -> Statistic:
        first, *others = (build_measure(pairs, arm) for arm in arms)

        def difference(weights: Floats) -> Floats:
            return first(weights) - others[0](weights) if others else first(weights)

        return resample(MeasureTerm(difference, len(pairs)), reason, resample_count=resample_count)

    def kappa(pairs: Sequence[JudgedPair], arm: str) -> Measure:
        return fleiss_kappa([getattr(pair, arm) for pair in pairs])

    def recall(label: bool, arms: Sequence[str]) -> Statistic:
        if len(arms) > 1:
            return estimate(lambda pairs, arm: class_recall(pairs, arm, label), decided, no_class, arms)
        hits = [getattr(pair, arms[0]).majority is label for pair in decided if pair.reference is label]
        return share_statistic(hits, no_class)

    def build_row(*arms: str) -> PairedRow:
        """Compute the figures of one group, or of the first group minus the second."""
        medians = [np.array([median(getattr(pair, arm).seconds) for pair in timed]) for arm in arms]
        # The second group minus the first, because the figure is the time that the debate saves.
        seconds = medians[1] - medians[0] if len(arms) > 1 else medians[0]
        median_term = MeasureTerm(repeated_median_measure(seconds, np.arange(len(seconds))), len(seconds))
        return PairedRow(
            fleiss=estimate(kappa, finished, no_kappa, arms),
            recall_not_relevant=recall(False, arms),
            recall_relevant=recall(True, arms),
            balanced_accuracy=estimate(balanced_accuracy, decided, single_class, arms),
            seconds=resample(median_term, NO_TIME, resample_count=resample_count),
        )

    return PairedTable(
        pairs=len(finished),
        referenced=len(referenced),
        ties=len(referenced) - len(decided),
        hidden=build_row("hidden"),
        shown=build_row("shown"),
        difference=build_row("shown", "hidden"),
    )


def fleiss_kappa(cells: Sequence[ArmCell]) -> Measure:
    """Return Fleiss' kappa of a group's votes on pairs, which all have the same number of votes."""
    votes_per_pair = len(cells[0].votes) if cells else 0
    relevant_votes = np.array([sum(cell.votes) for cell in cells], dtype=np.int64)
    return fleiss_measure(np.stack([votes_per_pair - relevant_votes, relevant_votes]), votes_per_pair)


def class_recall(pairs: Sequence[JudgedPair], arm: str, label: bool) -> Measure:
    """Return the recall of a class: the share of its pairs that the group's majority labels so."""
    is_in_class = np.array([pair.reference is label for pair in pairs], dtype=float)
    is_right = is_in_class * np.array([getattr(pair, arm).majority is pair.reference for pair in pairs], dtype=float)
    return lambda weights: safe_ratio(weights @ is_right, weights @ is_in_class)


def balanced_accuracy(pairs: Sequence[JudgedPair], arm: str) -> Measure:
    """Return the mean of the recalls of both classes."""
    recalls = [class_recall(pairs, arm, label) for label in (True, False)]
    return lambda weights: np.mean([recall(weights) for recall in recalls], axis=0)


def judged_pairs(votes: Sequence[tuple[int, str, bool, float | None, bool | None]]) -> list[JudgedPair]:
    """Build the pairs of rows (pair, arm, relevant, seconds, reference), in the order of their ids."""
    cells: dict[tuple[int, str], list[tuple[bool, float | None]]] = defaultdict(list)
    references: dict[int, bool | None] = {}
    for pair, arm, relevant, seconds, reference in votes:
        cells[pair, arm].append((relevant, seconds))
        references[pair] = reference

    def cell(pair: int, arm: str) -> ArmCell:
        seconds = tuple(time for _relevant, time in cells[pair, arm] if time is not None)
        return ArmCell(tuple(relevant for relevant, _time in cells[pair, arm]), seconds)

    return [
        JudgedPair(pair, cell(pair, "hidden"), cell(pair, "shown"), references[pair]) for pair in sorted(references)
    ]
