"""Debate against ensemble: how often each outcome met each other one, and what handing cells to people costs. Pure.

A cell is named by row and column: `1y.5-0` is "agreed on relevant in round 1, five votes yes, none no".
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from annotation.agreement.measures import Statistic
from annotation.agreement.proportions import Stratum, clopper_pearson, stratified_share
from annotation.policies.people import SimulatedPeople
from annotation.policies.replay import Reference, reference_label
from annotation.policies.rules import PolicyPanel
from annotation.policies.stored import AnswerGroup, Gathered
from charts.translation import gettext_noop
from judges.domain import debate, ensemble
from judges.domain.verdicts import NoVerdict

# Rows beside agreements: never agreed; a turn brought no verdict; no debate (as a column: no votes).
OPEN, LOST, NONE = "open", "lost", "none"
NOT_MEASURED = gettext_noop("not measured")


@dataclass(frozen=True, slots=True)
class CrossingCell:
    """Pairs with one outcome of the debate and one count of votes."""

    row: str
    column: str
    pairs: int
    # That a pair of it gets when it is not handed to people: the debate's, else the majority's; None: it has none.
    label: int | None
    # Under debate + ensemble with the campaign's rounds and majority; where nobody debated, by the votes alone.
    escalated: bool
    known: int  # Pairs of it whose truth is known, and of them those where the label is right.
    right: int

    @property
    def key(self) -> str:
        """Its name in a URL."""
        return f"{self.row}.{self.column}"

    @property
    def error(self) -> Statistic:
        """Share of wrong labels, if it were not handed to people."""
        if self.label is None or not self.known:
            return Statistic(None, None, None, self.known, NOT_MEASURED if self.label is not None else "no label")
        low, high = clopper_pearson(self.right, self.known)
        return Statistic(1 - self.right / self.known, 1 - high, 1 - low, self.known, None)


def cross_tabulate(panel: PolicyPanel, found: Gathered, reference: Reference) -> list[CrossingCell]:
    """Every cell that has a pair. Pairs of a cell carry equal weights, so known pairs are counted as they are."""
    cells: dict[tuple[str, str], CrossingCell] = {}
    for group in found.groups:
        row, agreed = debate_of(panel, group)
        column, tally = votes_of(group)
        chosen = tally.label(panel.majority)
        label = chosen if agreed is None else agreed
        truths = [(at[0], n) for truth, n in group.truths.items() if (at := reference_label(truth, reference)) and n]
        to_people = chosen is None if row == NONE else agreed is None or agreed != chosen
        old = cells.get((row, column), CrossingCell(row, column, 0, label, to_people, 0, 0))
        cells[row, column] = CrossingCell(
            row,
            column,
            old.pairs + group.pairs,
            old.label,
            old.escalated,
            old.known + sum(n for _, n in truths),
            old.right + sum(n for truth, n in truths if truth == label),
        )
    return sorted(cells.values(), key=lambda cell: (row_order(cell.row), column_order(cell.column)))


def debate_of(panel: PolicyPanel, group: AnswerGroup) -> tuple[str, int | None]:
    """The row of a group, and the label on which its debate agreed."""
    if not group.turns:
        return NONE, None
    move = debate.next_move(group.turns, panel.rounds, panel.agents)
    if isinstance(move, debate.Agreed):
        return f"{move.round}{'y' if move.label else 'n'}", move.label
    return (OPEN if isinstance(move, debate.Disagreed) else LOST), None


def votes_of(group: AnswerGroup) -> tuple[str, ensemble.Count]:
    """The column of a group: votes yes - votes no; missing ones are what is left to the panel's size."""
    tally = ensemble.count_votes(None if isinstance(one, NoVerdict) else one.verdict for one in group.votes.values())
    return (f"{tally.yes}-{tally.no}" if group.votes else NONE), tally


def row_order(row: str) -> tuple[int, str]:
    """Early agreements first, relevant before not."""
    last = {OPEN: 97, LOST: 98, NONE: 99}
    return (last[row], "") if row in last else (int(row[:-1]), "" if row.endswith("y") else "n")


def column_order(column: str) -> tuple[int, int]:
    """From all yes to all no; fuller panels first."""
    if column == NONE:
        return 99, 0
    yes, no = map(int, column.split("-"))
    return no - yes, -(yes + no)


@dataclass(frozen=True, slots=True)
class Simulation:
    """What it would come to if people got the pairs of some cells and the others kept their label."""

    pairs: int
    escalated: int
    judgments: int
    hours: float | None
    money: float | None
    # Share of wrong labels among those that are kept, over cells whose error is measured, weighted by their sizes.
    error: Statistic
    unmeasured: int  # Kept pairs of cells without a known truth: they stand in no error.

    @property
    def escalation(self) -> float:
        """Share of pairs that people get."""
        return self.escalated / self.pairs if self.pairs else 0.0

    @property
    def wrong(self) -> float | None:
        """Kept labels that are wrong, expected, of the measured ones."""
        kept = self.pairs - self.escalated - self.unmeasured
        return None if self.error.value is None else self.error.value * kept


def simulate_escalation(cells: Sequence[CrossingCell], handed: Collection[str], people: SimulatedPeople) -> Simulation:
    """Hand these cells to people, and those that have no label to keep."""
    escalated = sum(cell.pairs for cell in cells if cell.label is None or cell.key in handed)
    kept = [cell for cell in cells if cell.label is not None and cell.key not in handed]
    judgments = escalated * people.overlap
    return Simulation(
        pairs=sum(cell.pairs for cell in cells),
        escalated=escalated,
        judgments=judgments,
        hours=people.hours(judgments),
        money=people.cost(judgments),
        error=expected_error(kept),
        unmeasured=sum(cell.pairs for cell in kept if not cell.known),
    )


def expected_error(kept: Iterable[CrossingCell]) -> Statistic:
    """Share of wrong labels over cells, weighted by their sizes, with a 95% interval that joins their exact ones."""
    measured = [cell for cell in kept if cell.known]
    found = stratified_share([Stratum(cell.pairs, cell.known, cell.right) for cell in measured])
    if found is None:
        return Statistic(None, None, None, 0, NOT_MEASURED)
    value, (low, high) = found
    return Statistic(1 - value, 1 - high, 1 - low, sum(cell.known for cell in measured), None)
