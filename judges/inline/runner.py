"""The inline runner: calls that a process makes by itself, without workers, labels or people, each stored as a row.

The campaign that keeps the attempts is finished from the start, so no worker takes its work and no start joins it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Generic, TypeVar

from django.conf import settings
from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext as _
from redis.asyncio import Redis
from structlog.contextvars import bind_contextvars

from corpus.errors import Incomplete
from corpus.models import Collection, Pair
from judges.campaigns import counters
from judges.campaigns.configurations import Configuration
from judges.campaigns.forecasts import pair_inputs
from judges.costs.budget import Budget, BudgetExhausted, renew_reservations
from judges.engine import plan as plans
from judges.engine.answers import recover_answers
from judges.engine.cache import FIND, Cache
from judges.engine.calls import Caller, Tools
from judges.engine.leases import Claimed
from judges.engine.limits import RateLimits, process_name
from judges.engine.writer import ResultWriter
from judges.models import Campaign, Work
from judges.providers import close_providers, load_provider, open_provider
from judges.tasks import database_parameters

T = TypeVar("T")
AT_ONCE = 32
LEASE_S = 120.0


@dataclass(slots=True)
class Refusal:
    """Why an account refuses us, once it does; nothing more is sent from then on."""

    is_known: bool = False
    why: str = ""

    def tell(self, why: str) -> None:
        """Take the news: first that it refuses, then why."""
        self.is_known, self.why = True, self.why or why


def run_inline(
    plan: plans.Plan,
    held: Sequence[Claimed],
    ask: Callable[[Caller, Claimed], Awaitable[T]],
    *,
    done: Callable[[int], None] = lambda count: None,
    stopped: Callable[[], bool] = lambda: False,
    known: str = FIND,
    at_once: int = AT_ONCE,
) -> list[T]:
    """Return what `ask` makes of each pair, in their order. `done` is told how many have ended.

    Once `stopped` says so `ask` gets the engine's Cancelled. `known`: the statement that finds
    earlier answers. `at_once`: pairs that are asked about together, and calls on their way. Raises
    Incomplete, when all calls that were out have ended, where an account refuses us or a judge's
    answers are of no use: they are counted as in campaigns (judges.domain.refusals), and what was
    answered is stored.
    """
    refusal = Refusal()

    async def main() -> list[T]:
        holder, folder = process_name(), settings.VAR / "spool"
        writer = ResultWriter(database_parameters(), folder)
        writer.start()
        await writer.ready()
        limits = RateLimits(lambda: Redis.from_url(settings.REDIS_URL), settings.PREFIX, holder)
        sending = asyncio.Semaphore(at_once)
        tools = Tools(writer, Cache(writer, known), limits, sending, holder, settings.RETRY_SECONDS)
        for account, limit in plan.limits.items():
            limits.account(account).limit = limit
        budget = Budget(writer, plan.campaign, holder, LEASE_S)
        budget.apply_plan(plan)
        keeping = asyncio.create_task(_keep_budget(budget))
        try:
            # What a dead process of the same command had received is in the cache before anything is asked again.
            await recover_answers(writer, folder)
            await budget.look()
            for judge in plan.voters:
                await asyncio.to_thread(load_provider, judge.provider)
                open_provider(judge)
            caller = Caller(tools, plan, budget, lambda: refusal.is_known or stopped(), refusal.tell, puts_back=False)
            results = await _ask_all(caller, held, ask, done, at_once, refusal)
            await limits.trials.forget_start(plan.start)
            return results
        finally:
            keeping.cancel()
            await budget.close()
            await close_providers()
            await limits.close()
            await asyncio.to_thread(writer.stop)

    return asyncio.run(main())


async def _keep_budget(budget: Budget) -> None:
    """Renew what this process holds, which would be taken for lost, and notice limits that were set since."""
    while True:
        await asyncio.sleep(LEASE_S / 4)
        await budget.writer.ask(partial(renew_reservations, holder=budget.holder, lease=LEASE_S))
        # A run that began without limits takes the ones that admins set while it goes on.
        await budget.look()


async def _ask_all(
    caller: Caller,
    held: Sequence[Claimed],
    ask: Callable[[Caller, Claimed], Awaitable[T]],
    done: Callable[[int], None],
    at_once: int,
    refusal: Refusal,
) -> list[T]:
    room, ended = asyncio.Semaphore(at_once), 0

    async def one(claimed: Claimed) -> T:
        nonlocal ended
        bind_contextvars(**caller.plan.log_fields(claimed.pair))  # for this task alone
        async with room:
            answer = await ask(caller, claimed)
        ended += 1
        done(ended)
        return answer

    results = await asyncio.gather(*map(one, held), return_exceptions=True)
    if refusal.is_known:
        raise Incomplete(refusal.why or _("an account refuses every call"))
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]


@dataclass(frozen=True, slots=True)
class InlineResult(Generic[T]):
    """Answers about all pairs, how many pairs got none, and the campaign that has the attempts."""

    answers: Mapping[int, T]  # By pair.
    lost: int
    campaign: Campaign
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
    try:
        answers = run_inline(plan, held, ask_within_budget, done=done)
    except Incomplete:
        _finish_campaign(campaign, {}, len(held))
        raise
    given = {one.pair: answer for one, answer in zip(held, answers, strict=True) if answer is not None}
    lost = len(held) - len(given)
    _finish_campaign(campaign, given, lost)
    sums = counters.read(campaign.pk)
    calls, cached, unpriced = (int(sums[key]) for key in ("calls", "calls_cached", "calls_without_price"))
    return InlineResult(given, lost, campaign, calls, cached, sums["cost"], unpriced, spent)


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
