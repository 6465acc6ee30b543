"""The paired study: the same pairs judged by two disjoint groups, with and without the debate (DREAM, table 3). Pure.

Each pair counts where every place of both groups was filled. A group's label is its majority. Differences are taken
pair by pair, so the pairs that are drawn are the same on both sides.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from annotation.agreement.measures import ONE_GRADE, Statistic, fleiss_measure
from annotation.agreement.proportions import share_statistic
from annotation.experiments.votes import (
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
ORDER = ("shown", "hidden")  # Of the terms of a difference.
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


@dataclass(frozen=True, slots=True)
class PairedRow:
    """A line of the table of a paired study. Times are medians over pairs of the group's median seconds."""

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
    # A tie is no label: the pair leaves the recalls of both groups, so that they stay over the same pairs.
    decided = [one for one in known if one.hidden.majority is not None and one.shown.majority is not None]
    hidden, shown = (_build_row(full, decided, name, overlap, bootstrap=bootstrap) for name in ("hidden", "shown"))
    return PairedTable(
        pairs=len(full),
        known=len(known),
        ties=len(known) - len(decided),
        hidden=hidden,
        shown=shown,
        difference=_difference_row(full, decided, overlap, bootstrap=bootstrap),
    )


def _build_row(
    full: Sequence[JudgedPair], decided: Sequence[JudgedPair], name: str, overlap: int, bootstrap: int
) -> PairedRow:
    """The figures of one group."""
    one_class, no_class = (NO_BOTH, NO_CLASS) if decided else (NO_GOLD, NO_GOLD)
    yes, no = ([_arm_cell(one, name).majority for one in decided if one.truth is truth] for truth in (True, False))
    cells = [_arm_cell(one, name) for one in full]
    timed = [median(_arm_cell(one, name).seconds) for one in full if one.hidden.seconds and one.shown.seconds]
    return PairedRow(
        fleiss=bootstrap_statistic(fleiss_kappa(cells), len(full), _why_undefined(full, overlap), bootstrap=bootstrap),
        recall_not_relevant=share_statistic([said is False for said in no], no_class),
        recall_relevant=share_statistic([said is True for said in yes], no_class),
        balanced_accuracy=bootstrap_statistic(
            balanced_accuracy(decided, name), len(decided), one_class, bootstrap=bootstrap
        ),
        seconds=bootstrap_statistic(_median_measure(timed), len(timed), NO_TIME, bootstrap=bootstrap),
    )


def _difference_row(
    full: Sequence[JudgedPair], decided: Sequence[JudgedPair], overlap: int, bootstrap: int
) -> PairedRow:
    """Build the line of differences: shown minus hidden. Both groups are resampled on the same pairs."""
    one_class, no_class = (NO_BOTH, NO_CLASS) if decided else (NO_GOLD, NO_GOLD)
    kappas = [fleiss_kappa([_arm_cell(one, name) for one in full]) for name in ORDER]
    recalls = {truth: [class_recall(decided, name, truth) for name in ORDER] for truth in (True, False)}
    balanced = [balanced_accuracy(decided, name) for name in ORDER]
    timed = [one for one in full if one.hidden.seconds and one.shown.seconds]
    # The other way round: what the debate saves.
    saved = [median(one.hidden.seconds) - median(one.shown.seconds) for one in timed]

    def estimate(measures: Sequence[Measure], pairs: Sequence[JudgedPair], reason: str) -> Statistic:
        shown, hidden = measures
        return bootstrap_statistic(lambda w: shown(w) - hidden(w), len(pairs), reason, bootstrap=bootstrap)

    return PairedRow(
        fleiss=estimate(kappas, full, _why_undefined(full, overlap)),
        recall_not_relevant=estimate(recalls[False], decided, no_class),
        recall_relevant=estimate(recalls[True], decided, no_class),
        balanced_accuracy=estimate(balanced, decided, one_class),
        seconds=bootstrap_statistic(_median_measure(saved), len(saved), NO_TIME, bootstrap=bootstrap),
    )


def _why_undefined(full: Sequence[JudgedPair], overlap: int) -> str:
    if not full:
        return NO_PAIR
    return ONE_VOTE if overlap < 2 else ONE_GRADE


def _arm_cell(one: JudgedPair, name: str) -> ArmCell:
    return one.hidden if name == "hidden" else one.shown


def fleiss_kappa(cells: Sequence[ArmCell]) -> Measure:
    """Fleiss' kappa of pairs that equally many people judged."""
    votes = len(cells[0].votes) if cells else 0
    yes = np.array([sum(cell.votes) for cell in cells], dtype=np.int64)
    return fleiss_measure(np.stack([votes - yes, yes]), votes)


def class_recall(pairs: Sequence[JudgedPair], name: str, truth: bool) -> Measure:
    """The share of the pairs of a class that the group's majority finds."""
    known = np.array([one.truth is truth for one in pairs], dtype=float)
    right = known * np.array([_arm_cell(one, name).majority is one.truth for one in pairs], dtype=float)
    return lambda weights: safe_ratio(weights @ right, weights @ known)


def balanced_accuracy(pairs: Sequence[JudgedPair], name: str) -> Measure:
    """The mean of both recalls."""
    parts = [class_recall(pairs, name, truth) for truth in (True, False)]
    return lambda weights: np.mean([part(weights) for part in parts], axis=0)


def _median_measure(values: Sequence[float]) -> Measure:
    """The median, where a pair that was drawn twice counts twice."""
    return repeated_median(np.array(values), np.arange(len(values)))


def judged_pairs(votes: Sequence[tuple[int, str, bool, float | None, bool | None]]) -> list[JudgedPair]:
    """Pairs from rows of (pair, arm, relevant, seconds, truth), in the order of their ids."""
    cells: dict[tuple[int, str], list[tuple[bool, float | None]]] = defaultdict(list)
    truths: dict[int, bool | None] = {}
    for pair, arm, relevant, seconds, truth in votes:
        cells[pair, arm].append((relevant, seconds))
        truths[pair] = truth
    return [
        JudgedPair(pair, _build_cell(cells[pair, "hidden"]), _build_cell(cells[pair, "shown"]), truths[pair])
        for pair in sorted(truths)
    ]


def _build_cell(votes: Sequence[tuple[bool, float | None]]) -> ArmCell:
    seconds = tuple(one for _, one in votes if one is not None)
    return ArmCell(tuple(relevant for relevant, _ in votes), seconds)
