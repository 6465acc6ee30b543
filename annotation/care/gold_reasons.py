"""Reasons for and against gold pairs by configured models: the default panel's debaters, where these are models.

A worker asks them once a sample is drawn; until then, and where a debater leaves its side, the offline pair's stand.
The calls are booked and capped like all of the collection's.
"""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from django.db import transaction

from annotation.care.models import GoldPair, GoldSet
from corpus.errors import BadInput
from judges import configurations, prompts, wakeups
from judges.asking import ask_alone
from judges.configurations import Configuration
from judges.debate import AGAINST, FOR
from judges.engine.budget import Spent
from judges.engine.calls import Caller, Question
from judges.engine.claims import Claimed
from judges.models import Campaign
from judges.records import Turn

WRITE = "annotation.write_gold_reasons"
OFFLINE = "offline"
SEATS = (FOR, AGAINST)


def writers() -> Configuration | None:
    """Who writes; None where no model is configured. It labels nothing, so it has the policy that does not."""
    try:
        found = configurations.configuration(policy=Campaign.Policy.DEBATE.value, rounds=1)
    except BadInput:
        return None
    if any(judge.provider == OFFLINE for judge in found.debaters):
        return None
    return replace(found, policy=Campaign.Policy.EVIDENCE.value, debaters=found.debaters[:2])


def write_later(gold_set: GoldSet) -> None:
    """Let a worker do it where a model is configured: the queue keeps the message until one lives."""
    if writers() is not None:
        transaction.on_commit(lambda: wakeups.post(WRITE, gold_set.pk))


def write(gold_set: GoldSet) -> int:
    """Ask for the pairs that no debate of their own speaks for and nobody has graded; how many got a model's reason."""
    wanted = writers()
    rows = {
        row.pair_id: row
        for row in GoldPair.objects.filter(gold_set=gold_set, written_by=OFFLINE, answers=None).order_by("place")
    }
    if wanted is None or not rows:
        return 0
    found = ask_alone(gold_set.collection, wanted, "gold reasons", list(rows), _argue)
    names = {"for": wanted.debaters[0].name, "against": wanted.debaters[1].name}
    return sum(_keep(rows[pair], turns, names) for pair, turns in found.answers.items())


async def _argue(caller: Caller, claimed: Claimed) -> dict[str, Turn] | None:
    """Each debater's first turn, by side. Its role is not that of a turn, so no page takes it for a debate."""
    judges = zip(SEATS, caller.plan.debaters, strict=True)
    questions = [
        Question(("check", 1, place), judge, prompts.turn_prompt(claimed.inputs, seat, 1), prompts.TURN_SCHEMA)
        for place, (seat, judge) in enumerate(judges)
    ]
    try:
        said = [await caller.ask(claimed, question) for question in questions]
    except Spent:
        return None
    return {seat.side.value: turn for seat, turn in zip(SEATS, said, strict=True) if isinstance(turn, Turn)}


def _keep(row: GoldPair, said: Mapping[str, Turn], names: Mapping[str, str]) -> bool:
    """Put each turn that speaks for its own side in the place of the offline one; whether there was one."""
    kept = {side: turn for side, turn in said.items() if turn.verdict == int(side == "for")}
    if not kept:
        return False
    turns = [_said(old, kept.get(old["side"])) for old in row.turns]
    by = ", ".join(dict.fromkeys(names[side] if side in kept else OFFLINE for side in names))
    return bool(GoldPair.objects.filter(pk=row.pk, answers=None).update(turns=turns, written_by=by[:200]))


def _said(old: dict[str, Any], turn: Turn | None) -> dict[str, Any]:
    if turn is None:
        return old
    return {**old, "reason": turn.reason, "quotes": [asdict(quote) for quote in turn.quotes]}
