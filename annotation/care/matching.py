"""Dressing a gold pair as an ordinary item: which gold pair looks most like a given ordinary item. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from random import Random


@dataclass(frozen=True, slots=True)
class Look:
    """What of an item's page can be seen at a glance. Lengths in characters."""

    pair: int
    shape: str
    """Rounds, agents and last verdicts of its debate; "" for none."""
    debate: int
    document: int
    reason: str = ""
    arm: str = ""


@dataclass(frozen=True, slots=True)
class Dressed:
    """A gold pair, and the ordinary item whose reason and arm it takes over."""

    pair: int
    reason: str
    arm: str


BLIND = ("audit",)
"""Reasons of items without a debate: any gold pair may look so."""


def dress(ordinary: Sequence[Look], gold: Sequence[Look], *, count: int, seed: int) -> list[Dressed]:
    """Up to `count` checks: each is the twin of an ordinary item that was drawn at random.

    A twin has a debate of the same shape and, among those gold pairs that are left, the nearest lengths. Ordinary items
    for which no gold pair is left have no twin, so fewer may come back.
    """
    chance = Random(seed)
    left = {look.pair: look for look in gold}
    found: list[Dressed] = []
    drawn = [chance.choice(ordinary) for _ in range(count * 3)] if ordinary else []
    for twin in drawn:
        if len(found) == count or not left:
            break
        fits = [look for look in left.values() if twin.reason in BLIND or look.shape == twin.shape]
        if not fits:
            continue
        chance.shuffle(fits)
        nearest = min(fits, key=lambda look, twin=twin: distance(look, twin))  # type: ignore[misc]
        del left[nearest.pair]
        found.append(Dressed(nearest.pair, twin.reason, twin.arm))
    return found


def distance(a: Look, b: Look) -> float:
    """How different two lengths of debate and document are, on a logarithmic scale."""
    blind = b.reason in BLIND
    debate = 0.0 if blind else abs(log((a.debate + 1) / (b.debate + 1)))
    return debate + abs(log((a.document + 1) / (b.document + 1)))


def shape_of(turns: Sequence[Mapping[str, object]]) -> str:
    """ "2 rounds, 2 agents, 1-0": what the form of a debate tells. Empty for none."""
    if not turns:
        return ""
    rounds = [int(str(turn["round"])) for turn in turns]
    last = [turn for turn, round in zip(turns, rounds, strict=True) if round == max(rounds)]
    said = "-".join(str(turn["verdict"]) for turn in sorted(last, key=lambda t: (str(t["side"]), str(t["couple"]))))
    return f"{max(rounds)} rounds, {len(turns)} turns, {said}"
