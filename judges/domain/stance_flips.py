"""Stance flips: an agent that changes sides without new evidence. Pure; the judging page marks such turns too."""

from collections.abc import Iterable

Span = tuple[int, int]
# An agent's turn in a round: the round, the verdict, and the positions of its verified quotes in the document.
Stance = tuple[int, int, tuple[Span, ...]]


def flips(opening: int, stances: Iterable[Stance]) -> list[int]:
    """Return the rounds in which the agent's verdict changed (at first: from its opening stance) without new evidence.

    `stances` are without turns that brought no verdict: these neither change sides nor hide a change.
    """
    verdict, earlier_spans, flip_rounds = opening, list[Span](), []
    for round, current_verdict, spans in sorted(stances):
        # Evidence is a quote from the document that does not lie wholly within one of the agent's earlier quotes.
        # A quote taken over from the opponent is evidence: the agent now relies on it.
        if current_verdict != verdict and all(
            any(first <= start and end <= last for first, last in earlier_spans) for start, end in spans
        ):
            flip_rounds.append(round)
        verdict = current_verdict
        earlier_spans += spans
    return flip_rounds
