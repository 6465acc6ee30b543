"""The paired study: two disjoint groups judge the same pairs with and without the debate (DREAM, table 3). Pure.

A pair counts once both groups have given all their votes on it. The label of a group is its majority.
For differences both groups are resampled on the same pairs.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from annotation.agreement.measures import ONE_GRADE, Statistic, fleiss_measure
from annotation.agreement.proportions import share_statistic
from annotation.agreement.resampling import Floats
from annotation.work.experiments.votes import (
    NO_BOTH,
    NO_CLASS,
    RESAMPLES,
    Measure,
    bootstrap_statistic,
    repeated_median,
    safe_ratio,
)
from charts.translation import gettext_noop

NO_PAIR = gettext_noop("no pair has all votes from both groups yet")
NO_GOLD = gettext_noop("no pair with a majority in both groups has a reference grade")
NO_TIME = gettext_noop("no pair has a measured time in both groups")
ONE_VOTE = gettext_noop("only one vote per pair, so agreement cannot be computed")


@dataclass(frozen=True, slots=True)
class ArmCell:
    """The votes of a group on a pair, relevant or not, and their measured seconds."""

    votes: tuple[bool, ...]
    seconds: tuple[float, ...] = ()

    @property
    def majority(self) -> bool | None:
        """Return whether most votes are "relevant"; None for a tie."""
        relevant = sum(self.votes)
        return None if relevant * 2 == len(self.votes) else relevant * 2 > len(self.votes)


@dataclass(frozen=True, slots=True)
class JudgedPair:
    """A pair with the votes of both groups; `truth`: whether the reference grade is relevant, None without one."""

    pair: int
    hidden: ArmCell
    shown: ArmCell
    truth: bool | None = None


# From pairs and the name of a group to a measure of its votes.
PairMeasure = Callable[[Sequence[JudgedPair], str], Measure]


@dataclass(frozen=True, slots=True)
class PairedRow:
    """A row of a paired study's table. Seconds: the median over pairs of the group's median on a pair."""

    fleiss: Statistic
    recall_not_relevant: Statistic
    recall_relevant: Statistic
    balanced_accuracy: Statistic
    seconds: Statistic


@dataclass(frozen=True, slots=True)
class PairedTable:
    """Results with the debate hidden, shown, and shown minus hidden (for seconds hidden minus shown)."""

    pairs: int
    known: int  # Pairs with a reference grade.
    ties: int  # Of these, pairs with a tie in a group, which the recalls leave out.
    hidden: PairedRow
    shown: PairedRow
    difference: PairedRow


def paired_table(judged: Sequence[JudgedPair], overlap: int, *, bootstrap: int = RESAMPLES) -> PairedTable:
    """Compute the table over the pairs that `overlap` people of each group judged."""
    # Pairs that only one group has finished would make the groups' pairs differ.
    full = [pair for pair in judged if len(pair.hidden.votes) == len(pair.shown.votes) == overlap]
    referenced = [pair for pair in full if pair.truth is not None]
    # A pair with a tie in one group is left out for both, so that their recalls are over the same pairs.
    decided = [pair for pair in referenced if pair.hidden.majority is not None and pair.shown.majority is not None]
    no_both, no_class = (NO_BOTH, NO_CLASS) if decided else (NO_GOLD, NO_GOLD)
    no_kappa = NO_PAIR if not full else ONE_VOTE if overlap < 2 else ONE_GRADE
    timed = [pair for pair in full if pair.hidden.seconds and pair.shown.seconds]

    def estimate(make: PairMeasure, pairs: Sequence[JudgedPair], reason: str, arms: Sequence[str]) -> Statistic:
        first, *others = (make(pairs, arm) for arm in arms)

        def difference(weights: Floats) -> Floats:
            return first(weights) - others[0](weights) if others else first(weights)

        return bootstrap_statistic(reason, (difference, len(pairs)), bootstrap=bootstrap)

    def kappa(pairs: Sequence[JudgedPair], arm: str) -> Measure:
        return fleiss_kappa([getattr(pair, arm) for pair in pairs])

    def recall(label: bool, arms: Sequence[str]) -> Statistic:
        if len(arms) > 1:
            return estimate(lambda pairs, arm: class_recall(pairs, arm, label), decided, no_class, arms)
        hits = [getattr(pair, arms[0]).majority is label for pair in decided if pair.truth is label]
        return share_statistic(hits, no_class)

    def build_row(*arms: str) -> PairedRow:
        """Compute the figures of one group, or of the first group minus the second."""
        medians = [np.array([median(getattr(pair, arm).seconds) for pair in timed]) for arm in arms]
        # Seconds the other way round, because the figure is the time that the debate saves.
        seconds = medians[1] - medians[0] if len(arms) > 1 else medians[0]
        middle = repeated_median(seconds, np.arange(len(seconds)))
        return PairedRow(
            fleiss=estimate(kappa, full, no_kappa, arms),
            recall_not_relevant=recall(False, arms),
            recall_relevant=recall(True, arms),
            balanced_accuracy=estimate(balanced_accuracy, decided, no_both, arms),
            seconds=bootstrap_statistic(NO_TIME, (middle, len(seconds)), bootstrap=bootstrap),
        )

    return PairedTable(
        pairs=len(full),
        known=len(referenced),
        ties=len(referenced) - len(decided),
        hidden=build_row("hidden"),
        shown=build_row("shown"),
        difference=build_row("shown", "hidden"),
    )


def fleiss_kappa(cells: Sequence[ArmCell]) -> Measure:
    """Return Fleiss' kappa of pairs with equally many votes."""
    votes = len(cells[0].votes) if cells else 0
    yes = np.array([sum(cell.votes) for cell in cells], dtype=np.int64)
    return fleiss_measure(np.stack([votes - yes, yes]), votes)


def class_recall(pairs: Sequence[JudgedPair], arm: str, label: bool) -> Measure:
    """Return the recall of a class: the share of its pairs that the group's majority labels so."""
    is_in_class = np.array([pair.truth is label for pair in pairs], dtype=float)
    right = is_in_class * np.array([getattr(pair, arm).majority is pair.truth for pair in pairs], dtype=float)
    return lambda weights: safe_ratio(weights @ right, weights @ is_in_class)


def balanced_accuracy(pairs: Sequence[JudgedPair], arm: str) -> Measure:
    """Return the mean of the recalls of both classes."""
    parts = [class_recall(pairs, arm, label) for label in (True, False)]
    return lambda weights: np.mean([part(weights) for part in parts], axis=0)


def judged_pairs(votes: Sequence[tuple[int, str, bool, float | None, bool | None]]) -> list[JudgedPair]:
    """Build the pairs of rows (pair, arm, relevant, seconds, truth), in the order of their ids."""
    cells: dict[tuple[int, str], list[tuple[bool, float | None]]] = defaultdict(list)
    truths: dict[int, bool | None] = {}
    for pair, arm, relevant, seconds, reference in votes:
        cells[pair, arm].append((relevant, seconds))
        truths[pair] = reference

    def cell(pair: int, arm: str) -> ArmCell:
        seconds = tuple(time for _relevant, time in cells[pair, arm] if time is not None)
        return ArmCell(tuple(relevant for relevant, _time in cells[pair, arm]), seconds)

    return [JudgedPair(pair, cell(pair, "hidden"), cell(pair, "shown"), truths[pair]) for pair in sorted(truths)]
