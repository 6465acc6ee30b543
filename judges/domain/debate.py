"""The debate as a state machine over counted turns (DREAM 3.1, equation 2; more agents and orders: appendix B).

All agents of a round are asked before any of them answers; the round is over when every answer is in. Equal responses
end the debate in any round, including the first; agents that swap sides disagree like any others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judges.domain.verdicts import NoVerdict
from judges.records import DebateAgent, Side, Turn

MOST_AGENTS = 4
# Opening stances of agents A and B, by the name of the order; C and D open with the same stances.
ORDERS = {"relevant-first": (Side.FOR, Side.AGAINST), "irrelevant-first": (Side.AGAINST, Side.FOR)}

Turns = Mapping[tuple[int, DebateAgent], Turn | NoVerdict]  # By round and agent.


def debate_agents(agents: int = 2, order: str = "relevant-first") -> tuple[DebateAgent, ...]:
    """Return the agents, A first. Raises ValueError for fewer than 2 or more than 4, KeyError for an unknown order."""
    if not 2 <= agents <= MOST_AGENTS:
        raise ValueError(f"A debate has 2 to {MOST_AGENTS} agents, not {agents}.")
    stances = ORDERS[order]
    return tuple(DebateAgent(stances[index % 2], index // 2) for index in range(agents))


PAIR = debate_agents()  # Two agents, relevant first.
FOR, AGAINST = PAIR


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """A request for the turns of several agents at the same time: of all of them, except after an interruption."""

    round: int
    # Turns of the previous round; None in round 1, where the opening stances take their place.
    history: dict[DebateAgent, Turn] | None
    agents: tuple[DebateAgent, ...] = PAIR


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
    """A debate that cannot continue: a turn of this round brought no verdict."""

    round: int


Move = TurnRequest | Agreed | Disagreed | Broken


def next_move(turns: Turns, rounds: int, agents: Sequence[DebateAgent] = PAIR, *, play_on: bool = False) -> Move:
    """Return the next move in a debate of at most `rounds` rounds, from the turns so far.

    With `play_on`, all rounds are played even after an agreement, to study them (DREAM B.3): the first agreement still
    counts, and turns without a verdict after it change nothing. Raises ValueError if `rounds` is less than 1.
    """
    if rounds < 1:
        raise ValueError("A debate has at least one round.")
    agreed: Agreed | None = None
    history: dict[DebateAgent, Turn] | None = None
    for round in range(1, rounds + 1):
        round_turns = {agent: turns[round, agent] for agent in agents if (round, agent) in turns}
        if missing := tuple(agent for agent in agents if agent not in round_turns):
            return TurnRequest(round, history, missing)
        history = {agent: turn for agent, turn in round_turns.items() if isinstance(turn, Turn)}
        # Checked only when the round is complete: the other agents' answers are paid for, and must be collected.
        if len(history) < len(round_turns):
            return agreed or Broken(round)
        verdicts = {turn.verdict for turn in history.values()}
        if len(verdicts) == 1:
            agreed = agreed or Agreed(round, verdicts.pop())
            if not play_on:
                return agreed
    return agreed or Disagreed()
