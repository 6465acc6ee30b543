"""The collapse guard: agents that change sides without new evidence (DESIGN 5). Pure.

An agent that gives up its side and quotes nothing new from the document may have been persuaded by the other's
insistence alone. Such turns are marked. Whether an agreement that rests on one counts as disagreement is an option.
"""

from collections.abc import Iterable

from judges.domain.debate import Turns
from judges.domain.stance_flips import Span, Stance, flips
from judges.records import DebateAgent, Quote, Side, Turn


def without_evidence(turns: Turns) -> frozenset[tuple[int, DebateAgent]]:
    """Turns whose verdict differs from the same agent's verdict before, without evidence (judges.domain.stance_flips).

    A lost turn neither changes sides nor hides a change.
    """
    seats = {seat for _, seat in turns}
    return frozenset((round, seat) for seat in seats for round in flips(_opening(seat), _stances(turns, seat)))


def relies_on_stance_flip(turns: Turns, round: int) -> bool:
    """Whether an agreement in this round rests on an agent that came to its side without evidence, then or before.

    Its last change of sides is what counts: an agent that came back with evidence stands on that.
    """
    marked = without_evidence(turns)
    return any(last in marked for last in _last_changes(turns, round))


def _last_changes(turns: Turns, round: int) -> Iterable[tuple[int, DebateAgent]]:
    for seat in {seat for _, seat in turns}:
        verdict, last = _opening(seat), None
        for at in range(1, round + 1):
            turn = turns.get((at, seat))
            if isinstance(turn, Turn) and turn.verdict != verdict:
                verdict, last = turn.verdict, (at, seat)
        if last is not None:
            yield last


def _opening(seat: DebateAgent) -> int:
    return int(seat.side is Side.FOR)


def _stances(turns: Turns, seat: DebateAgent) -> list[Stance]:
    said = ((round, turn) for (round, other), turn in turns.items() if other == seat)
    return [Stance(round, turn.verdict, _spans(turn.quotes)) for round, turn in said if isinstance(turn, Turn)]


def _spans(quotes: Iterable[Quote]) -> tuple[Span, ...]:
    return tuple((quote.start, quote.end) for quote in quotes if quote.start is not None and quote.end is not None)
