"""The debate as a state machine over counted turns (DREAM 3.1, equation 2).

Both sides of a round are asked before either answers; the round is over when both are in. Equal responses end the
debate in any round, the first included; swapped sides are a disagreement like any other.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from judges.records import Side, Turn
from judges.verdicts import Gone

SIDES = (Side.FOR, Side.AGAINST)
Turns = Mapping[tuple[int, Side], Turn | Gone]


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask these sides, at the same time. More than one turn is missing unless a stop came between the two."""

    round: int
    history: tuple[Turn, Turn] | None
    """Turns (for, against) of the round before; None in round 1, where the stances take their place."""
    sides: tuple[Side, ...] = SIDES


@dataclass(frozen=True, slots=True)
class Agreed:
    """Both sides gave the same response in this round."""

    round: int
    label: int


@dataclass(frozen=True, slots=True)
class Disagreed:
    """The last round is over and the sides still differ."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A turn of this round brought no verdict: the debate cannot go on."""

    round: int


Move = Ask | Agreed | Disagreed | Broken


def next_move(turns: Turns, rounds: int) -> Move:
    """What comes next in a debate of at most `rounds` rounds, from the turns counted so far.

    A lost turn ends the debate only once its round is complete, so that the other side's answer, which is paid for,
    is taken in. Raises ValueError when `rounds` is less than 1.
    """
    if rounds < 1:
        raise ValueError("A debate has at least one round.")
    history: tuple[Turn, Turn] | None = None
    for round in range(1, rounds + 1):
        pro, con = (turns.get((round, side)) for side in SIDES)
        if pro is None or con is None:
            missing = tuple(side for side in SIDES if (round, side) not in turns)
            return Ask(round, history, missing)
        if isinstance(pro, Gone) or isinstance(con, Gone):
            return Broken(round)
        if pro.verdict == con.verdict:
            return Agreed(round, pro.verdict)
        history = (pro, con)
    return Disagreed()
