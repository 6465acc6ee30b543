"""The debate as a state machine over counted turns (DREAM 3.1, equation 2; more agents and orders: appendix B).

All agents of a round are asked before any answers; the round is over when all are in. Equal
responses end the debate in any round, the first included; swapped sides are a disagreement like any
other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judges.domain.verdicts import NoVerdict
from judges.records import DebateAgent, Side, Turn

MOST_AGENTS = 4
# Opening stances of agents A and B, by the name of the order; C and D hold the same again.
ORDERS = {"relevant-first": (Side.FOR, Side.AGAINST), "irrelevant-first": (Side.AGAINST, Side.FOR)}

Turns = Mapping[tuple[int, DebateAgent], Turn | NoVerdict]  # By round and agent.


def debate_agents(agents: int = 2, order: str = "relevant-first") -> tuple[DebateAgent, ...]:
    """Return the agents' places, A first. Raises ValueError for less than 2 or more than 4, KeyError for the order."""
    if not 2 <= agents <= MOST_AGENTS:
        raise ValueError(f"A debate has 2 to {MOST_AGENTS} agents, not {agents}.")
    stances = ORDERS[order]
    return tuple(DebateAgent(stances[place % 2], place // 2) for place in range(agents))


PAIR = debate_agents()  # Two agents, relevant first.
FOR, AGAINST = PAIR


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """A request to ask agents at once; fewer are missing only after an interruption."""

    round: int
    # Turns of the round before; None in round 1, where the stances take their place.
    history: dict[DebateAgent, Turn] | None
    seats: tuple[DebateAgent, ...] = PAIR


@dataclass(frozen=True, slots=True)
class Agreed:
    """All agents gave the same response in this round."""

    round: int
    label: int


@dataclass(frozen=True, slots=True)
class Disagreed:
    """The last round is over and the agents still differ."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A debate that cannot go on: a turn of this round brought no verdict."""

    round: int


Move = TurnRequest | Agreed | Disagreed | Broken


def next_move(turns: Turns, rounds: int, agents: Sequence[DebateAgent] = PAIR, *, play_on: bool = False) -> Move:
    """Return what comes next in a debate of at most `rounds` rounds, from the turns counted so far.

    `play_on` asks every round even after an agreement, to study it (DREAM B.3): the first agreement
    counts all the same, and what gets lost after it changes nothing. Raises ValueError when
    `rounds` is less than 1.
    """
    if rounds < 1:
        raise ValueError("A debate has at least one round.")
    agreed: Agreed | None = None
    history: dict[DebateAgent, Turn] | None = None
    for round in range(1, rounds + 1):
        said = {seat: turns[round, seat] for seat in agents if (round, seat) in turns}
        if missing := tuple(seat for seat in agents if seat not in said):
            return TurnRequest(round, history, missing)
        history = {seat: turn for seat, turn in said.items() if isinstance(turn, Turn)}
        # Only now, with the round complete: the other answers are paid for, and were to be taken in.
        if len(history) < len(said):
            return agreed or Broken(round)
        verdicts = {turn.verdict for turn in history.values()}
        if len(verdicts) == 1:
            agreed = agreed or Agreed(round, verdicts.pop())
            if not play_on:
                return agreed
    return agreed or Disagreed()
