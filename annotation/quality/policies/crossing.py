"""Cross table of debate and ensemble. Pure.

The cell `1y.5-0` counts pairs with "agreed on relevant in round 1, five votes yes, none no".
"""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace

from annotation.agreement.measures import Statistic
from annotation.agreement.proportions import Stratum, clopper_pearson, stratified_share
from annotation.quality.policies.replay import Reference, reference_label
from annotation.quality.policies.rules import PolicyPanel
from annotation.quality.policies.stored import CampaignAnswers
from charts.translation import gettext_noop
from judges.domain import debate

# Rows other than agreements: no agreement; a turn without a verdict; no debate (as a column: no votes).
OPEN, LOST, NONE = "open", "lost", "none"
NOT_MEASURED = gettext_noop("not measured")


@dataclass(frozen=True, slots=True)
class CrossingCell:
    """Pairs with one outcome of the debate and one count of votes."""

    row: str
    column: str
    pairs: int
    # Label of pairs that are not escalated: the debate's, else the majority's; None: neither has one.
    label: int | None
    # Under debate + ensemble with the campaign's rounds and majority; without a debate, by the votes alone.
    escalated: bool
    known: int  # Number of pairs whose true label is known.
    right: int  # Of those, pairs with that label.

    @property
    def key(self) -> str:
        """Name of the cell in a URL."""
        return f"{self.row}.{self.column}"

    @property
    def error(self) -> Statistic:
        """Share of wrong labels if the cell is not escalated."""
        if self.label is None or not self.known:
            return Statistic(None, None, None, self.known, NOT_MEASURED if self.label is not None else "no label")
        low, high = clopper_pearson(self.right, self.known)
        return Statistic(1 - self.right / self.known, 1 - high, 1 - low, self.known, None)


def cross_tabulate(panel: PolicyPanel, answers: CampaignAnswers, reference: Reference) -> list[CrossingCell]:
    """Count the pairs of every cell that has any, by row and column."""
    cells: dict[tuple[str, str], CrossingCell] = {}
    for group in answers.groups:
        # The row is the outcome of the debate.
        row, debate_label = NONE, None
        if group.turns:
            move = debate.next_move(group.turns, panel.rounds, panel.agents)
            row = OPEN if isinstance(move, debate.Disagreed) else LOST
            if isinstance(move, debate.Agreed):
                row, debate_label = f"{move.round}{'y' if move.label else 'n'}", move.label
        # The column is the count of votes: "2-1" of five where two votes are missing.
        tally = group.count_votes()
        column = f"{tally.yes}-{tally.no}" if group.votes else NONE
        majority_label = tally.label(panel.majority)
        label = majority_label if debate_label is None else debate_label
        truths = [
            (labelled[0], n)
            for true_labels, n in group.truths.items()
            if (labelled := reference_label(true_labels, reference)) and n
        ]
        # Without a debate the votes decide; with one, votes that differ from it escalate the pair.
        escalated = majority_label is None if row == NONE else debate_label is None or debate_label != majority_label
        cell = cells.get((row, column), CrossingCell(row, column, 0, label, escalated, 0, 0))
        right = cell.right + sum(n for true_class, n in truths if true_class == label)
        known_pairs = cell.known + sum(n for _, n in truths)
        cells[row, column] = replace(cell, pairs=cell.pairs + group.pairs, known=known_pairs, right=right)
    return sorted(cells.values(), key=lambda cell: (row_order(cell.row), column_order(cell.column)))


def row_order(row: str) -> tuple[int, str]:
    """Return the sort key of a row: early agreements first, relevant before not relevant."""
    # Greater than any number of rounds that a debate may have.
    last_rows = {OPEN: 97, LOST: 98, NONE: 99}
    return (last_rows[row], "") if row in last_rows else (int(row[:-1]), "" if row.endswith("y") else "n")


def column_order(column: str) -> tuple[int, int]:
    """Return the sort key of a column: from all yes to all no, fuller panels first."""
    if column == NONE:
        return 99, 0
    yes, no = map(int, column.split("-"))
    return no - yes, -(yes + no)


@dataclass(frozen=True, slots=True)
class SimulatedPeople:
    """The people who judge escalated pairs, their time and cost. None: unknown."""

    overlap: int  # Number of people who judge an escalated pair.
    seconds: float | None  # Median time of a judgment on the page.
    hourly_rate: float | None  # USD.

    def hours(self, judgments: int) -> float | None:
        """Return the time of so many judgments; 0 for none, even if the time of one is unknown."""
        if not judgments:
            return 0.0
        return None if self.seconds is None else judgments * self.seconds / 3600

    def cost(self, judgments: int) -> float | None:
        """Return the cost in USD; 0 for no judgments, even if the time or the rate is unknown."""
        hours = self.hours(judgments)
        if not judgments or hours is None or self.hourly_rate is None:
            return None if judgments else 0.0
        return hours * self.hourly_rate


@dataclass(frozen=True, slots=True)
class EscalationOutcome:
    """What it costs if people judge some cells of the cross table, and how often the labels of the others are wrong."""

    pairs: int
    escalated: int  # Pairs that people judge.
    escalated_share: float  # Share of these pairs.
    judgments: int
    hours: float | None  # None if the time of a judgment is unknown.
    cost: float | None  # USD; None if the time of a judgment or the hourly rate is unknown.
    error: Statistic  # Expected share of wrong labels among the pairs that are not escalated.
    wrong: float | None  # Expected number of wrong labels in the measured cells; None if no cell is measured.
    unmeasured: int  # Pairs that are not escalated, in cells without a pair whose true label is known.


def simulate_escalation(
    cells: Sequence[CrossingCell], cells_for_people: Container[str], people: SimulatedPeople
) -> EscalationOutcome:
    """Return the outcome if people judge the cells with the keys `cells_for_people`, and those without a label."""
    pairs = sum(cell.pairs for cell in cells)
    labelled_cells = [cell for cell in cells if cell.label is not None and cell.key not in cells_for_people]
    escalated = pairs - sum(cell.pairs for cell in labelled_cells)
    judgments = escalated * people.overlap
    error = expected_error(labelled_cells)
    unmeasured = sum(cell.pairs for cell in labelled_cells if not cell.known)
    return EscalationOutcome(
        pairs=pairs,
        escalated=escalated,
        escalated_share=escalated / pairs if pairs else 0.0,
        judgments=judgments,
        hours=people.hours(judgments),
        cost=people.cost(judgments),
        error=error,
        wrong=None if error.value is None else error.value * (pairs - escalated - unmeasured),
        unmeasured=unmeasured,
    )


def expected_error(cells: Iterable[CrossingCell]) -> Statistic:
    """Return the share of wrong labels over cells, weighted by size, with a 95% interval that joins exact ones."""
    measured = [cell for cell in cells if cell.known]
    share = stratified_share([Stratum(cell.pairs, cell.known, cell.right) for cell in measured])
    if share is None:
        return Statistic(None, None, None, 0, NOT_MEASURED)
    value, (low, high) = share
    return Statistic(1 - value, 1 - high, 1 - low, sum(cell.known for cell in measured), None)
