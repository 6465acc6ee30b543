"""Pairs that this process asks about itself, without workers, labels or people: measuring, scoring.

The campaign that keeps the attempts is finished from the start, so no worker takes its work and no start joins it.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, TypeVar

from django.conf import settings
from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone

from corpus.models import Collection, Pair
from judges.campaigns import counters
from judges.campaigns.configurations import Configuration
from judges.engine import plan as plans
from judges.engine.calls import Caller
from judges.engine.leases import Claimed
from judges.inline import runner
from judges.models import Campaign, Work
from judges.records import Inputs
from judges.tasks import database_parameters

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class InlinePair(Generic[T]):
    """What came of it: the answers by pair, how many pairs got none, and the campaign that keeps the attempts."""

    answers: Mapping[int, T]
    lost: int
    campaign: int
    calls: int
    cached: int
    cost: float
    unpriced: int = 0
    """Calls whose price nobody knows: they are not in `cost`."""


@dataclass(frozen=True, slots=True)
class InlineLimits:
    """Where it stops; None: nowhere."""

    budget: float | None = None
    max_calls: int | None = None


def ask_inline(
    collection: Collection,
    wanted: Configuration,
    purpose: str,
    pairs: Sequence[int],
    ask: Callable[[Caller, Claimed], Awaitable[T | None]],
    *,
    limits: InlineLimits = InlineLimits(),
    done: Callable[[int], None] = lambda count: None,
) -> InlinePair[T]:
    """What `ask` makes of each pair; None counts as lost. `done` is told how many have ended."""
    values = wanted.values | {"panel": f"{wanted.panel}, {purpose}"[:100]}
    campaign = Campaign.objects.create(
        collection=collection,
        rubric=collection.rubric,
        instruction=collection.instruction,
        state=Campaign.State.FINISHED,
        budget=limits.budget,
        max_calls=limits.max_calls,
        **values,
    )
    held = _create_work(campaign, list(pairs))
    plan = plans.load_plan(campaign.pk)
    assert plan is not None
    connection.close()
    answers = runner.run_inline(
        plan,
        held,
        ask,
        dsn=database_parameters(),
        redis_url=settings.REDIS_URL,
        prefix=settings.PREFIX,
        folder=settings.VAR / "spool",
        retry_s=settings.RETRY_SECONDS,
        done=done,
    )
    given = {one.pair: answer for one, answer in zip(held, answers, strict=True) if answer is not None}
    return _finish_campaign(campaign, given, len(held) - len(given))


def _create_work(campaign: Campaign, pairs: list[int]) -> list[Claimed]:
    """Work that this process holds, with its texts."""
    until = timezone.now() + timedelta(days=1)
    values = {"state": Work.State.RUNNING, "fence": 1, "claims": 1, "lease_until": until}
    work = Work.objects.bulk_create(Work(campaign=campaign, pair_id=pair, **values) for pair in pairs)
    known = Pair.objects.select_related("query", "document").in_bulk(pairs)
    counters.add(campaign.pk, "pairs", len(pairs))
    return [
        Claimed(one.pk, one.pair_id, 1, 0, known[one.pair_id].query_id, _pair_inputs(known[one.pair_id], campaign))
        for one in work
    ]


def _pair_inputs(pair: Pair, campaign: Campaign) -> Inputs:
    query, document = pair.query, pair.document
    definition = campaign.relevance.of(query)
    return Inputs(
        query.text, tuple(query.answers), document.title, document.text, definition, pair.collection_id, document.pk
    )


def _finish_campaign(campaign: Campaign, given: Mapping[int, T], lost: int) -> InlinePair[T]:
    work = Work.objects.filter(campaign=campaign)
    work.filter(pair__in=given).update(state=Work.State.LABELLED, ended_at=Now(), lease_until=None)
    work.exclude(pair__in=given).update(state=Work.State.FAILED, reason="error", ended_at=Now(), lease_until=None)
    Campaign.objects.filter(pk=campaign.pk).update(finished_at=Now())
    counters.add(campaign.pk, "written", len(given))
    counters.add(campaign.pk, "failed", lost)
    sums = counters.read(campaign.pk)
    calls, cached = int(sums["calls"]), int(sums["calls_cached"])
    return InlinePair(given, lost, campaign.pk, calls, cached, sums["cost"], int(sums["calls_without_price"]))
