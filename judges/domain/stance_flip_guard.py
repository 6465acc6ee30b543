"""The stance-flip guard: agents that change sides without new evidence. Pure.

An agent that gives up its side and quotes nothing new from the document may have been persuaded by the other's
insistence alone. Such turns are marked. Whether an agreement that rests on one counts as disagreement is an option.
"""

from judges.domain.debate import Turns
from judges.domain.stance_flips import Stance, flips
from judges.records import DebateAgent, Side, Turn


def without_evidence(turns: Turns) -> frozenset[tuple[int, DebateAgent]]:
    """Return the turns, as (round, agent), in which the agent changed its verdict without new evidence."""
    marked = set()
    for agent in {agent for _, agent in turns}:
        stances: list[Stance] = []
        for (round, speaker), turn in turns.items():
            if speaker == agent and isinstance(turn, Turn):
                positions = ((quote.start, quote.end) for quote in turn.quotes)
                spans = tuple((start, end) for start, end in positions if start is not None and end is not None)
                stances.append((round, turn.verdict, spans))
        marked |= {(round, agent) for round in flips(_opening_verdict(agent), stances)}
    return frozenset(marked)


def relies_on_stance_flip(turns: Turns, round: int) -> bool:
    """Return whether this round's agreement rests on an agent that changed sides without evidence, now or earlier."""
    marked = without_evidence(turns)
    for agent in {agent for _, agent in turns}:
        # Only an agent's last change of sides counts: a later one with evidence makes up for it.
        verdict, last_change = _opening_verdict(agent), 0
        for number in range(1, round + 1):
            turn = turns.get((number, agent))
            if isinstance(turn, Turn) and turn.verdict != verdict:
                verdict, last_change = turn.verdict, number
        if (last_change, agent) in marked:
            return True
    return False


def _opening_verdict(agent: DebateAgent) -> int:
    return int(agent.side is Side.FOR)
