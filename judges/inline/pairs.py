"""Pairs that this process asks about itself, without workers, labels or people: measuring, scoring.

The campaign that keeps the attempts is finished from the start, so no worker takes its work and no start joins it.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, TypeVar

from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone

from corpus.models import Collection, Pair
from judges.campaigns import counters
from judges.campaigns.configurations import Configuration
from judges.campaigns.forecasts import pair_inputs
from judges.costs.budget import BudgetExhausted
from judges.engine import plan as plans
from judges.engine.calls import Caller
from judges.engine.leases import Claimed
from judges.inline import runner
from judges.models import Campaign, Work

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class InlineResult(Generic[T]):
    """What came of all pairs: their answers, how many got none, and the campaign that keeps the attempts."""

    answers: Mapping[int, T]  # By pair.
    lost: int
    campaign: int
    calls: int
    cached: int
    cost: float
    unpriced: int  # Calls whose price nobody knows: they are not in `cost`.
    spent: bool  # Money or calls ran out before the end.


def ask_inline(
    collection: Collection,
    wanted: Configuration,
    purpose: str,
    pairs: Sequence[int],
    ask: Callable[[Caller, Claimed], Awaitable[T | None]],
    *,
    budget: float | None = None,
    max_calls: int | None = None,
    done: Callable[[int], None] = lambda count: None,
) -> InlineResult[T]:
    """Ask about each pair; None, and a budget that is used up, count as lost. `done` is told how many have ended."""
    campaign = open_finished_campaign(collection, wanted, f"{wanted.panel}, {purpose}", budget, max_calls)
    held = _create_work(campaign, list(pairs))
    plan = plans.load_plan(campaign.pk)
    assert plan is not None
    spent = False

    async def ask_within_budget(caller: Caller, claimed: Claimed) -> T | None:
        nonlocal spent
        try:
            return await ask(caller, claimed)
        except BudgetExhausted:
            # The other pairs go on: what they ask may stand in the cache, and costs nothing then.
            spent = True
            return None

    connection.close()
    answers = runner.run_inline(plan, held, ask_within_budget, done=done)
    given = {one.pair: answer for one, answer in zip(held, answers, strict=True) if answer is not None}
    lost = len(held) - len(given)
    _finish_campaign(campaign, given, lost)
    sums = counters.read(campaign.pk)
    calls, cached, unpriced = (int(sums[key]) for key in ("calls", "calls_cached", "calls_without_price"))
    return InlineResult(given, lost, campaign.pk, calls, cached, sums["cost"], unpriced, spent)


def open_finished_campaign(
    collection: Collection, wanted: Configuration, purpose: str, budget: float | None, max_calls: int | None
) -> Campaign:
    """Create the campaign that keeps calls of this process; `purpose` is shown in the place of its panel."""
    return Campaign.objects.create(
        collection=collection,
        rubric=collection.rubric,
        instruction=collection.instruction,
        state=Campaign.State.FINISHED,
        budget=budget,
        max_calls=max_calls,
        **wanted.values | {"panel": purpose[:100]},
    )


def _create_work(campaign: Campaign, pairs: list[int]) -> list[Claimed]:
    """Work that this process holds, with its texts."""
    # Nobody renews these leases: a day is longer than any command runs.
    until = timezone.now() + timedelta(days=1)
    values = {"state": Work.State.RUNNING, "fence": 1, "claims": 1, "lease_until": until}
    work = Work.objects.bulk_create(Work(campaign=campaign, pair_id=pair, **values) for pair in pairs)
    known = Pair.objects.select_related("query", "document").in_bulk(pairs)
    counters.add(campaign.pk, "pairs", len(pairs))
    return [
        Claimed(row.pk, pair.pk, 1, 0, pair.query_id, pair_inputs(campaign, pair.query, pair.document))
        for row in work
        if (pair := known[row.pair_id])
    ]


def _finish_campaign(campaign: Campaign, given: Mapping[int, T], lost: int) -> None:
    work = Work.objects.filter(campaign=campaign)
    work.filter(pair__in=given).update(state=Work.State.LABELLED, ended_at=Now(), lease_until=None)
    work.exclude(pair__in=given).update(state=Work.State.FAILED, reason="error", ended_at=Now(), lease_until=None)
    Campaign.objects.filter(pk=campaign.pk).update(finished_at=Now())
    counters.add(campaign.pk, "written", len(given))
    counters.add(campaign.pk, "failed", lost)
