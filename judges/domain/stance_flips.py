"""Stance flips: an agent that changes sides without new evidence. Pure; the judging page marks such turns too."""

from collections.abc import Iterable

Span = tuple[int, int]
# What an agent said in a round: the round, its verdict, and where the quotes that were found stand in the document.
Stance = tuple[int, int, tuple[Span, ...]]


def flips(opening: int, stances: Iterable[Stance]) -> list[int]:
    """Rounds whose verdict differs from the agent's verdict before (at first: its opening stance), without evidence.

    `stances` without the agent's lost turns: one neither changes sides nor hides a change.
    """
    verdict, given, marked = opening, list[Span](), []
    for round, now, spans in sorted(stances):
        # Evidence is a quote that was found and does not lie wholly within one that the agent gave
        # before. A quote taken over from the opponent is evidence: the agent now stands on it.
        if now != verdict and all(any(first <= start and end <= last for first, last in given) for start, end in spans):
            marked.append(round)
        verdict = now
        given += spans
    return marked
