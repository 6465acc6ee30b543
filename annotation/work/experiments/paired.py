"""The paired study: the same pairs judged by two disjoint groups, with and without the debate (DREAM, table 3). Pure.

Each pair counts where every place of both groups was filled. A group's label is its majority.
Differences are taken pair by pair, so the pairs that are drawn are the same on both sides.
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
    """The votes of one group on one pair: relevant or not, and the seconds that were measured."""

    votes: tuple[bool, ...]
    seconds: tuple[float, ...] = ()

    @property
    def majority(self) -> bool | None:
        """Return whether most votes are "relevant"; None for a tie."""
        yes = sum(self.votes)
        return None if yes * 2 == len(self.votes) else yes * 2 > len(self.votes)


@dataclass(frozen=True, slots=True)
class JudgedPair:
    """A pair with the votes of both groups; `truth` None: no reference."""

    pair: int
    hidden: ArmCell
    shown: ArmCell
    truth: bool | None = None


# Pairs and the name of a group to their measure.
PairMeasure = Callable[[Sequence[JudgedPair], str], Measure]


@dataclass(frozen=True, slots=True)
class PairedRow:
    """A line of a paired study's table. Times are medians over pairs of the group's medians."""

    fleiss: Statistic
    recall_not_relevant: Statistic
    recall_relevant: Statistic
    balanced_accuracy: Statistic
    seconds: Statistic


@dataclass(frozen=True, slots=True)
class PairedTable:
    """Results of a paired study: debate hidden, shown, and shown minus hidden (for seconds: hidden minus shown)."""

    pairs: int
    known: int
    ties: int  # Pairs with a reference that a tie in a group leaves out of the recalls.
    hidden: PairedRow
    shown: PairedRow
    difference: PairedRow


def paired_table(found: Sequence[JudgedPair], overlap: int, *, bootstrap: int = RESAMPLES) -> PairedTable:
    """The table over the pairs that `overlap` people of each group judged."""
    # A pair that only one group has finished would compare two sets of pairs.
    full = [one for one in found if len(one.hidden.votes) == len(one.shown.votes) == overlap]
    known = [one for one in full if one.truth is not None]
    # A tie is no label: the pair leaves both groups' recalls, which stay over the same pairs.
    decided = [one for one in known if one.hidden.majority is not None and one.shown.majority is not None]
    no_both, no_class = (NO_BOTH, NO_CLASS) if decided else (NO_GOLD, NO_GOLD)
    no_kappa = NO_PAIR if not full else ONE_VOTE if overlap < 2 else ONE_GRADE
    timed = [one for one in full if one.hidden.seconds and one.shown.seconds]

    def estimate(make: PairMeasure, pairs: Sequence[JudgedPair], reason: str, arms: Sequence[str]) -> Statistic:
        first, *others = (make(pairs, arm) for arm in arms)

        # Of a difference both groups are resampled on the same pairs.
        def difference(weights: Floats) -> Floats:
            return first(weights) - others[0](weights) if others else first(weights)

        return bootstrap_statistic(reason, (difference, len(pairs)), bootstrap=bootstrap)

    def kappa(pairs: Sequence[JudgedPair], arm: str) -> Measure:
        return fleiss_kappa([getattr(one, arm) for one in pairs])

    def recall(truth: bool, arms: Sequence[str]) -> Statistic:
        if len(arms) > 1:
            return estimate(lambda pairs, arm: class_recall(pairs, arm, truth), decided, no_class, arms)
        found = [getattr(one, arms[0]).majority is truth for one in decided if one.truth is truth]
        return share_statistic(found, no_class)

    def build_row(*arms: str) -> PairedRow:
        """The figures of one group, or of two: the first minus the second."""
        medians = [np.array([median(getattr(one, arm).seconds) for one in timed]) for arm in arms]
        # The other way round: what the debate saves.
        seconds = medians[1] - medians[0] if len(arms) > 1 else medians[0]
        # The median, where a pair that was drawn twice counts twice.
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
        known=len(known),
        ties=len(known) - len(decided),
        hidden=build_row("hidden"),
        shown=build_row("shown"),
        difference=build_row("shown", "hidden"),
    )


def fleiss_kappa(cells: Sequence[ArmCell]) -> Measure:
    """Fleiss' kappa of pairs that equally many people judged."""
    votes = len(cells[0].votes) if cells else 0
    yes = np.array([sum(cell.votes) for cell in cells], dtype=np.int64)
    return fleiss_measure(np.stack([votes - yes, yes]), votes)


def class_recall(pairs: Sequence[JudgedPair], arm: str, truth: bool) -> Measure:
    """The share of the pairs of a class that the group's majority finds."""
    known = np.array([one.truth is truth for one in pairs], dtype=float)
    right = known * np.array([getattr(one, arm).majority is one.truth for one in pairs], dtype=float)
    return lambda weights: safe_ratio(weights @ right, weights @ known)


def balanced_accuracy(pairs: Sequence[JudgedPair], arm: str) -> Measure:
    """The mean of both recalls."""
    parts = [class_recall(pairs, arm, truth) for truth in (True, False)]
    return lambda weights: np.mean([part(weights) for part in parts], axis=0)


def judged_pairs(votes: Sequence[tuple[int, str, bool, float | None, bool | None]]) -> list[JudgedPair]:
    """Pairs from rows of (pair, arm, relevant, seconds, truth), in the order of their ids."""
    cells: dict[tuple[int, str], list[tuple[bool, float | None]]] = defaultdict(list)
    truths: dict[int, bool | None] = {}
    for pair, arm, relevant, seconds, truth in votes:
        cells[pair, arm].append((relevant, seconds))
        truths[pair] = truth

    def cell(pair: int, arm: str) -> ArmCell:
        seconds = tuple(taken for _relevant, taken in cells[pair, arm] if taken is not None)
        return ArmCell(tuple(relevant for relevant, _taken in cells[pair, arm]), seconds)

    return [JudgedPair(pair, cell(pair, "hidden"), cell(pair, "shown"), truths[pair]) for pair in sorted(truths)]
