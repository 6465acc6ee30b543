"""Dressing a gold pair as an ordinary item: which gold pair looks most like a given ordinary item. Pure."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from random import Random
from typing import Any

Turn = dict[str, Any]
"""A turn as annotation.entry reads them from an item."""


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
    query: int = 0
    relevant: bool = True
    """Of a gold pair: what is known to be right."""


@dataclass(frozen=True, slots=True)
class Dressed:
    """A gold pair, and the ordinary item whose reason and arm it takes over."""

    pair: int
    reason: str
    arm: str
    turns: list[Turn] | None = None
    """The debate that the check shows; None: that of its own pair."""


BLIND = ("audit",)
"""Reasons of items without a debate: any gold pair may look so."""
TRIED = 12
"""Gold pairs that are looked at for one twin: arguments are written for those that need some."""
Writer = Callable[[int, Look], list[Turn] | None]
"""What a gold pair shows in place of an own debate so that it looks like the twin; None where nothing can."""


def dress(
    ordinary: Sequence[Look],
    gold: Sequence[Look],
    *,
    count: int,
    seed: int,
    write: Writer = lambda pair, twin: None,
    length: Callable[[list[Turn]], int] = lambda turns: 0,
) -> list[Dressed]:
    """Up to `count` checks: each is the twin of an ordinary item that was drawn at random.

    Which label it has is drawn too, so that both come as often while there are both. A twin has a debate of the same
    shape, its own or a written one, and among some that are left the nearest lengths. Ordinary items for which no gold
    pair is left have no twin, so fewer may come back.
    """
    chance = Random(seed)
    left = {look.pair: look for look in gold}
    found: list[Dressed] = []
    drawn = [chance.choice(ordinary) for _ in range(count * 3)] if ordinary else []
    for twin in drawn:
        if len(found) == count or not left:
            break
        label = chance.random() < 0.5
        looks = [look for look in left.values() if look.relevant is label] or list(left.values())
        chance.shuffle(looks)
        own = [look for look in looks if twin.reason in BLIND or look.shape == twin.shape]
        fits: list[tuple[Look, list[Turn] | None]] = [(look, None) for look in own]
        others = [look for look in looks if look not in own] if len(own) < TRIED else []
        for look in others[: TRIED - len(own)]:
            if (turns := write(look.pair, twin)) is not None:
                fits.append((replace(look, debate=length(turns)), turns))
        if not fits:
            continue
        look, turns = min(fits, key=lambda fit, twin=twin: distance(fit[0], twin))  # type: ignore[misc]
        del left[look.pair]
        found.append(Dressed(look.pair, twin.reason, twin.arm, turns))
    return found


def stance_of(shape: str) -> tuple[int, int] | None:
    """Rounds and couples of a debate in which each side kept its stance to the end; None for any other shape."""
    found = re.fullmatch(r"(\d+) rounds, (\d+) turns, ([01-]+)", shape)
    if not found:
        return None
    rounds, turns, couples = int(found[1]), int(found[2]), found[3].count("0")
    kept = "-".join("0" * couples + "1" * couples)
    return (rounds, couples) if couples and found[3] == kept and turns == 2 * rounds * couples else None


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
