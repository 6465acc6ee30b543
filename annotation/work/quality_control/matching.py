"""Matching attention checks: which gold pairs can be displayed like a given ordinary item. Pure."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

Turn = dict[str, Any]  # A turn as items store it.


@dataclass(frozen=True, slots=True)
class DebateForm:
    """The form of a debate in which each agent keeps its stance; a couple is one agent for and one against."""

    rounds: int
    couples: int = 1


@dataclass(frozen=True, slots=True)
class PairFeatures:
    """Features by which an annotator could recognize an attention check."""

    pair: int
    shape: str  # Rounds, agents and last verdicts of its debate; "" for none.
    reason: str = ""
    arm: str = ""
    query: int = 0
    relevant: bool = True  # The label of a gold pair.
    by_models: bool = False  # Models, not the offline agents, wrote its debate.
    # The rounds in which models argued about a gold pair, by the number of couples.
    argued: Mapping[int, int] = field(default_factory=dict)

    def has_arguments(self, form: DebateForm | None) -> bool:
        """Return whether models wrote arguments in this form about the pair."""
        return form is not None and self.argued.get(form.couples, 0) >= form.rounds

    def speaks(self, form: DebateForm) -> bool:
        """Return whether the pair has arguments or a debate by models in this form."""
        return self.has_arguments(form) or (self.by_models and stance_of(self.shape) == form)


class MatchedCheck(NamedTuple):
    """A gold pair, and the reason of the ordinary item that it candidates like."""

    pair: int
    reason: str
    turns: list[Turn] | None = None  # The debate that the check shows; None: the debate about the pair.


BLIND = ("audit",)  # Reasons of items without a debate, which any gold pair can resemble.
# Returns the debate with which a gold pair resembles the twin; None where there is none.
Writer = Callable[[int, PairFeatures], list[Turn] | None]


def draw_pool(gold: Sequence[PairFeatures], most: int, seed: int) -> list[PairFeatures]:
    """Draw `most` gold pairs of each label, preferring pairs with a debate or arguments."""
    drawn = Random(f"{seed}:pool").sample(gold, len(gold))
    drawn.sort(key=lambda features: not (features.shape or features.argued))
    relevant = [features for features in drawn if features.relevant]
    not_relevant = [features for features in drawn if not features.relevant]
    return relevant[:most] + not_relevant[:most]


def match_checks(
    ordinary: Sequence[PairFeatures],
    gold: Sequence[PairFeatures],
    *,
    count: int,
    seed: int,
    write: Writer,
) -> list[MatchedCheck]:
    """Match up to `count` checks, each with a twin, which is an ordinary item drawn at random.

    The label is drawn too, so that both are equally frequent while there are gold pairs of both. A
    check has a debate of its twin's shape, about its pair or by `write`, if possible by writers of the
    same kind (models or the offline agents). Returns fewer checks where no gold pair matches a twin.
    """
    chance = Random(seed)
    unused = {features.pair: features for features in gold}
    checks: list[MatchedCheck] = []
    # Three draws for each check, because no gold pair may match a twin.
    for twin in [chance.choice(ordinary) for _ in range(count * 3)]:
        if len(checks) == count or not unused:
            break
        # A random label, so that annotators who guess are right no more often than by chance.
        label = chance.random() < 0.5
        candidates = [features for features in unused.values() if features.relevant is label] or list(unused.values())
        chance.shuffle(candidates)
        match = _find_match(twin, candidates, write)
        if match is None:
            continue
        features, turns = match
        del unused[features.pair]
        checks.append(MatchedCheck(features.pair, twin.reason, turns))
    return checks


def _find_match(
    twin: PairFeatures, candidates: Sequence[PairFeatures], write: Writer
) -> tuple[PairFeatures, list[Turn] | None] | None:
    """Return the first matching candidate, with its own debate (None) or a written one; None where none matches."""
    if twin.reason in BLIND:
        return candidates[0], None
    form = stance_of(twin.shape)

    def has_other_writers(features: PairFeatures) -> bool:
        by_models = (
            features.by_models if features.shape == twin.shape else twin.by_models and features.has_arguments(form)
        )
        return by_models != twin.by_models

    # Among debates by models one by the offline agents would be conspicuous, and the other way round.
    for features in sorted(candidates, key=has_other_writers):
        turns = None if features.shape == twin.shape else write(features.pair, twin)
        if turns is not None or features.shape == twin.shape:
            return features, turns
    return None


def stance_of(shape: str) -> DebateForm | None:
    """Return the form of a debate of this shape if each agent kept its stance; else None."""
    match = re.fullmatch(r"(\d+) rounds, (\d+) turns, ([01-]+)", shape)
    if not match:
        return None
    rounds, turns, couples = int(match[1]), int(match[2]), match[3].count("0")
    # "0" for each agent against, then "1" for each agent for: the order of sides in `shape_of`.
    verdicts = "-".join("0" * couples + "1" * couples)
    return DebateForm(rounds, couples) if couples and match[3] == verdicts and turns == 2 * rounds * couples else None


def shape_of(turns: Sequence[Mapping[str, object]]) -> str:
    """Return the shape of a debate as text, such as "2 rounds, 4 turns, 0-1"; "" without turns."""
    if not turns:
        return ""
    rounds = [int(str(turn["round"])) for turn in turns]
    last_turns = [turn for turn, round in zip(turns, rounds, strict=True) if round == max(rounds)]
    last_turns.sort(key=lambda turn: (str(turn["side"]), str(turn["couple"])))
    verdicts = "-".join(str(turn["verdict"]) for turn in last_turns)
    return f"{max(rounds)} rounds, {len(turns)} turns, {verdicts}"
