"""Dressing a gold pair as an item: which can look like a given ordinary one. Pure."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

Turn = dict[str, Any]  # A turn as an item keeps it.


@dataclass(frozen=True, slots=True)
class Form:
    """A debate in which each agent keeps its stance: so many rounds, by so many couples of one for and one against."""

    rounds: int
    couples: int = 1


@dataclass(frozen=True, slots=True)
class PairFeatures:
    """Features of an item's page that can be seen at a glance."""

    pair: int
    shape: str  # Rounds, agents and last verdicts of its debate; "" for none.
    reason: str = ""
    arm: str = ""
    query: int = 0
    relevant: bool = True  # Of a gold pair: what is known to be right.
    by_models: bool = False  # Models wrote its debate, not the offline pair.
    # Of a gold pair: in how many rounds models argued about it, by the number of couples.
    argued: Mapping[int, int] = field(default_factory=dict)

    def has_arguments(self, form: Form | None) -> bool:
        """Return whether models wrote arguments of this form about the pair."""
        return form is not None and self.argued.get(form.couples, 0) >= form.rounds

    def speaks(self, form: Form) -> bool:
        """Return whether the pair as an attention check can show models' words in this form: arguments or a debate."""
        return self.has_arguments(form) or (self.by_models and stance_of(self.shape) == form)


class Dressed(NamedTuple):
    """A gold pair, and the reason of the ordinary item that it looks like."""

    pair: int
    reason: str
    turns: list[Turn] | None = None  # The debate that the check shows; None: that of its own pair.


BLIND = ("audit",)  # Reasons of items without a debate: any gold pair may look so.
# What a gold pair shows in place of an own debate so that it looks like the twin; None where nothing can.
Writer = Callable[[int, PairFeatures], list[Turn] | None]


def draw_pool(gold: Sequence[PairFeatures], most: int, seed: int) -> list[PairFeatures]:
    """Draw `most` gold pairs of each label, debated or argued ones first."""
    drawn = Random(f"{seed}:pool").sample(gold, len(gold))
    drawn.sort(key=lambda look: not (look.shape or look.argued))
    return [look for label in (True, False) for look in [one for one in drawn if one.relevant is label][:most]]


def match_checks(
    ordinary: Sequence[PairFeatures],
    gold: Sequence[PairFeatures],
    *,
    count: int,
    seed: int,
    write: Writer,
) -> list[Dressed]:
    """Match up to `count` checks, each the twin of an ordinary item drawn at random.

    Which label it has is drawn too, so that both come as often while there are both. A twin has a
    debate of the same shape, its own or a written one, if possible by writers of its kind (models,
    or the offline pair). Ordinary items for which no gold pair is left have no twin, so fewer may
    come back.
    """
    chance = Random(seed)
    left = {look.pair: look for look in gold}
    found: list[Dressed] = []
    # Three tries for each wanted check: some twins have no gold pair that can look like them.
    for twin in [chance.choice(ordinary) for _ in range(count * 3)]:
        if len(found) == count or not left:
            break
        label = chance.random() < 0.5
        # One label at random, or whatever is left: a person who guesses must not be right more often than chance.
        looks = [look for look in left.values() if look.relevant is label] or list(left.values())
        chance.shuffle(looks)
        fit = _find_match(twin, looks, write)
        if fit is None:
            continue
        look, turns = fit
        del left[look.pair]
        found.append(Dressed(look.pair, twin.reason, turns))
    return found


def _find_match(
    twin: PairFeatures, looks: Sequence[PairFeatures], write: Writer
) -> tuple[PairFeatures, list[Turn] | None] | None:
    """Return the first look that is like the twin, with its own debate (None) or a written one; None for none."""
    if twin.reason in BLIND:
        return looks[0], None
    form = stance_of(twin.shape)

    def is_by_models(look: PairFeatures) -> bool:
        return look.by_models if look.shape == twin.shape else twin.by_models and look.has_arguments(form)

    # Beside debates of models the offline pair's words would stand out, and the other way round.
    for look in sorted(looks, key=lambda look: is_by_models(look) != twin.by_models):
        turns = None if look.shape == twin.shape else write(look.pair, twin)
        if turns is not None or look.shape == twin.shape:
            return look, turns
    return None


def stance_of(shape: str) -> Form | None:
    """Return a debate's form where each side kept its stance; None for any other shape."""
    found = re.fullmatch(r"(\d+) rounds, (\d+) turns, ([01-]+)", shape)
    if not found:
        return None
    rounds, turns, couples = int(found[1]), int(found[2]), found[3].count("0")
    # "0" for each agent against and "1" for each one for, in the order of `shape_of`'s sides.
    kept = "-".join("0" * couples + "1" * couples)
    return Form(rounds, couples) if couples and found[3] == kept and turns == 2 * rounds * couples else None


def shape_of(turns: Sequence[Mapping[str, object]]) -> str:
    """Return a debate's shape as text, as "2 rounds, 4 turns, 0-1"; "" for none."""
    if not turns:
        return ""
    rounds = [int(str(turn["round"])) for turn in turns]
    last = [turn for turn, round in zip(turns, rounds, strict=True) if round == max(rounds)]
    said = "-".join(str(turn["verdict"]) for turn in sorted(last, key=lambda t: (str(t["side"]), str(t["couple"]))))
    return f"{max(rounds)} rounds, {len(turns)} turns, {said}"
