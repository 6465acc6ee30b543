"""When an agent changes sides without new evidence. Pure.

Evidence is a quote that was found in the document and does not lie wholly within one quote that the agent gave in an
earlier round. A quote taken over from the opponent is evidence: the agent now stands on it.
"""

from collections.abc import Iterable
from typing import NamedTuple

Span = tuple[int, int]


class Stance(NamedTuple):
    """What an agent said in a round: its verdict, and where the quotes that were found stand in the document."""

    round: int
    verdict: int
    spans: tuple[Span, ...] = ()


def flips(opening: int, stances: Iterable[Stance]) -> list[int]:
    """Rounds whose verdict differs from the agent's verdict before (at first: its opening stance), without evidence.

    `stances` without the agent's lost turns: one neither changes sides nor hides a change.
    """
    verdict, given, marked = opening, list[Span](), []
    for stance in sorted(stances):
        if stance.verdict != verdict and all(_is_within(span, given) for span in stance.spans):
            marked.append(stance.round)
        verdict = stance.verdict
        given += stance.spans
    return marked


def _is_within(span: Span, given: Iterable[Span]) -> bool:
    return any(start <= span[0] and span[1] <= end for start, end in given)
