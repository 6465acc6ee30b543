"""Debate against ensemble by cells: `1y.5-0` is "agreed on relevant in round 1, five votes yes, none no". Pure."""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from annotation.agreement.measures import Statistic
from annotation.agreement.proportions import Stratum, clopper_pearson, stratified_share
from annotation.quality.policies.replay import Reference, reference_label
from annotation.quality.policies.rules import PolicyPanel
from annotation.quality.policies.stored import AnswerGroup, Gathered
from charts.translation import gettext_noop
from judges.domain import debate

# Rows beside agreements: never agreed; a turn without verdict; no debate (column: no votes).
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
        """The cell's name in a URL."""
        return f"{self.row}.{self.column}"

    @property
    def error(self) -> Statistic:
        """The share of wrong labels, if it were not handed to people."""
        if self.label is None or not self.known:
            return Statistic(None, None, None, self.known, NOT_MEASURED if self.label is not None else "no label")
        low, high = clopper_pearson(self.right, self.known)
        return Statistic(1 - self.right / self.known, 1 - high, 1 - low, self.known, None)


def cross_tabulate(panel: PolicyPanel, found: Gathered, reference: Reference) -> list[CrossingCell]:
    """Count the pairs of every cell that has one."""
    cells: dict[tuple[str, str], CrossingCell] = {}
    for group in found.groups:
        row, agreed = _debate_of(panel, group)
        tally = group.count_votes()
        # "2-1" of five: two votes are missing, and the cell tells.
        column = f"{tally.yes}-{tally.no}" if group.votes else NONE
        chosen = tally.label(panel.majority)
        label = chosen if agreed is None else agreed
        truths = [(at[0], n) for truth, n in group.truths.items() if (at := reference_label(truth, reference)) and n]
        # Without a debate the votes decide; with one, votes that differ send the pair to people.
        to_people = chosen is None if row == NONE else agreed is None or agreed != chosen
        old = cells.get((row, column), CrossingCell(row, column, 0, label, to_people, 0, 0))
        right = old.right + sum(n for truth, n in truths if truth == label)
        known = old.known + sum(n for _, n in truths)
        cells[row, column] = replace(old, pairs=old.pairs + group.pairs, known=known, right=right)
    return sorted(cells.values(), key=lambda cell: (row_order(cell.row), column_order(cell.column)))


def _debate_of(panel: PolicyPanel, group: AnswerGroup) -> tuple[str, int | None]:
    """The row of a group, and the label on which its debate agreed."""
    if not group.turns:
        return NONE, None
    move = debate.next_move(group.turns, panel.rounds, panel.agents)
    if isinstance(move, debate.Agreed):
        return f"{move.round}{'y' if move.label else 'n'}", move.label
    return (OPEN if isinstance(move, debate.Disagreed) else LOST), None


def row_order(row: str) -> tuple[int, str]:
    """Return where a row stands: early agreements first, relevant before not."""
    # Behind any number of rounds that a debate may have.
    last = {OPEN: 97, LOST: 98, NONE: 99}
    return (last[row], "") if row in last else (int(row[:-1]), "" if row.endswith("y") else "n")


def column_order(column: str) -> tuple[int, int]:
    """Return where a column stands: from all yes to all no, fuller panels first."""
    if column == NONE:
        return 99, 0
    yes, no = map(int, column.split("-"))
    return no - yes, -(yes + no)


@dataclass(frozen=True, slots=True)
class SimulatedPeople:
    """The people who get what is escalated, and what their part costs. None: unknown."""

    overlap: int  # People who judge an escalated pair.
    seconds: float | None  # Of a judgment: the median time on the page.
    hourly_rate: float | None  # USD.

    def hours(self, judgments: int) -> float | None:
        """Return the time on the page; no judgment takes none."""
        if not judgments:
            return 0.0
        return None if self.seconds is None else judgments * self.seconds / 3600

    def cost(self, judgments: int) -> float | None:
        """Return the price in USD; no judgment costs nothing, whatever is unknown."""
        hours = self.hours(judgments)
        if not judgments or hours is None or self.hourly_rate is None:
            return None if judgments else 0.0
        return hours * self.hourly_rate


def simulate_escalation(
    cells: Sequence[CrossingCell], handed: Container[str], people: SimulatedPeople
) -> dict[str, Any]:
    """Return the cost and error if people get the cells in `handed` and those without a label."""
    pairs = sum(cell.pairs for cell in cells)
    kept = [cell for cell in cells if cell.label is not None and cell.key not in handed]
    escalated = pairs - sum(cell.pairs for cell in kept)
    judgments, error = escalated * people.overlap, expected_error(kept)
    unmeasured = sum(cell.pairs for cell in kept if not cell.known)
    return {
        "pairs": pairs,
        "escalated": escalated,
        "escalation": escalated / pairs if pairs else 0.0,
        "judgments": judgments,
        "hours": people.hours(judgments),
        "money": people.cost(judgments),
        "error": error,
        "wrong": None if error.value is None else error.value * (pairs - escalated - unmeasured),
        "unmeasured": unmeasured,
    }


def expected_error(kept: Iterable[CrossingCell]) -> Statistic:
    """Share of wrong labels over cells, weighted by their sizes, with a 95% interval that joins their exact ones."""
    measured = [cell for cell in kept if cell.known]
    found = stratified_share([Stratum(cell.pairs, cell.known, cell.right) for cell in measured])
    if found is None:
        return Statistic(None, None, None, 0, NOT_MEASURED)
    value, (low, high) = found
    return Statistic(1 - value, 1 - high, 1 - low, sum(cell.known for cell in measured), None)
