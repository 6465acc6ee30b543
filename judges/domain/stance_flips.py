"""The collapse guard: agents that change sides without new evidence (DESIGN 5). Pure.

An agent that gives up its side and quotes nothing new from the document may have been persuaded by the other's
insistence alone. Such turns are marked. Whether an agreement that rests on one counts as disagreement is an option.
"""

from collections.abc import Iterable

from judges.domain.debate import Turns
from judges.records import Quote, Seat, Side, Turn

Span = tuple[int, int]


def without_evidence(turns: Turns) -> frozenset[tuple[int, Seat]]:
    """Turns whose verdict differs from the same agent's verdict before (in round 1: from its opening stance).

    Evidence is a quote that was found in the document and does not lie wholly within one quote that the agent gave in
    an earlier round. A quote taken over from the opponent is evidence: the agent now stands on it. A lost turn neither
    changes sides nor hides a change.
    """
    marked = set()
    for seat in {seat for _, seat in turns}:
        verdict = int(seat.side is Side.FOR)
        given: list[Span] = []
        for round in sorted(round for round, other in turns if other == seat):
            turn = turns[round, seat]
            if not isinstance(turn, Turn):
                continue
            found = _spans(turn.quotes)
            if turn.verdict != verdict and all(_within(span, given) for span in found):
                marked.add((round, seat))
            verdict = turn.verdict
            given += found
    return frozenset(marked)


def rests_on_collapse(turns: Turns, round: int) -> bool:
    """Whether an agreement in this round rests on an agent that came to its side without evidence, then or before.

    Its last change of sides is what counts: an agent that came back with evidence stands on that.
    """
    marked = without_evidence(turns)
    return any(last in marked for last in _last_changes(turns, round))


def _last_changes(turns: Turns, round: int) -> Iterable[tuple[int, Seat]]:
    for seat in {seat for _, seat in turns}:
        verdict, last = int(seat.side is Side.FOR), None
        for at in range(1, round + 1):
            turn = turns.get((at, seat))
            if isinstance(turn, Turn) and turn.verdict != verdict:
                verdict, last = turn.verdict, (at, seat)
        if last is not None:
            yield last


def _spans(quotes: Iterable[Quote]) -> list[Span]:
    return [(quote.start, quote.end) for quote in quotes if quote.start is not None and quote.end is not None]


def _within(span: Span, given: Iterable[Span]) -> bool:
    return any(start <= span[0] and span[1] <= end for start, end in given)
