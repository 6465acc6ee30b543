"""The stance-flip guard: agents that change sides without new evidence. Pure.

An agent that gives up its side and quotes nothing new from the document may have been persuaded by
the other's insistence alone. Such turns are marked. Whether an agreement that rests on one counts
as disagreement is an option.
"""

from collections.abc import Iterator

from judges.domain.debate import Turns
from judges.domain.stance_flips import Stance, flips
from judges.records import DebateAgent, Side, Turn


def without_evidence(turns: Turns) -> frozenset[tuple[int, DebateAgent]]:
    """Turns whose verdict differs from the same agent's verdict before, without evidence."""
    seats = {seat for _, seat in turns}
    return frozenset((round, seat) for seat in seats for round in flips(_opening(seat), _stances(turns, seat)))


def relies_on_stance_flip(turns: Turns, round: int) -> bool:
    """Return whether this round's agreement rests on an agent that changed sides without evidence, now or earlier."""
    marked = without_evidence(turns)
    changes = ((_last_change(turns, round, seat), seat) for seat in {seat for _, seat in turns})
    return any(last in marked for last in changes)


def _last_change(turns: Turns, last: int, seat: DebateAgent) -> int:
    """Return the round of the agent's last change of sides, which alone counts: a return with evidence stands."""
    verdict, found = _opening(seat), 0
    for round in range(1, last + 1):
        turn = turns.get((round, seat))
        if isinstance(turn, Turn) and turn.verdict != verdict:
            verdict, found = turn.verdict, round
    return found


def _opening(seat: DebateAgent) -> int:
    return int(seat.side is Side.FOR)


def _stances(turns: Turns, seat: DebateAgent) -> Iterator[Stance]:
    for (round, other), turn in turns.items():
        if other == seat and isinstance(turn, Turn):
            places = ((one.start, one.end) for one in turn.quotes)
            found = tuple((start, end) for start, end in places if start is not None and end is not None)
            yield round, turn.verdict, found
