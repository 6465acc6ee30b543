"""The inline runner: model calls that a process makes itself, without workers or labels, each stored as a row.

The campaign to which the attempts belong is finished from the start, so that no worker claims its pairs and no start
joins it.
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
from judges.campaigns.configurations import Configuration
from judges.campaigns.forecasts import pair_inputs
from judges.costs import counters
from judges.engine import plan as plans
from judges.engine.answers import recover_answers
from judges.engine.budget import Budget, BudgetExhausted, renew_reservations
from judges.engine.cache import FIND, Cache
from judges.engine.calls import Caller, Tools
from judges.engine.leases import Claimed
from judges.engine.limits import RateLimits, process_name
from judges.engine.writer import ResultWriter
from judges.models import Campaign, Work
from judges.providers import close_providers, load_provider, open_provider
from store.sql import database_parameters

T = TypeVar("T")
AT_ONCE = 32
LEASE_S = 120.0


@dataclass(slots=True)
class Refusal:
    """An account's refusal of every call, and its reason; no more calls are sent once it is known."""

    is_known: bool = False
    reason: str = ""

    def note(self, reason: str) -> None:
        """Note the refusal: at first without its reason, and again once that has been read."""
        self.is_known, self.reason = True, self.reason or reason


def run_inline(
    plan: plans.Plan,
    pairs: Sequence[Claimed],
    ask: Callable[[Caller, Claimed], Awaitable[T]],
    *,
    done: Callable[[int], None] = lambda count: None,
    should_stop: Callable[[], bool] = lambda: False,
    cache_statement: str = FIND,
    at_once: int = AT_ONCE,
) -> list[T]:
    """Return the result of `ask` for each pair, in their order. `done` gets the number of ended pairs.

    Once `should_stop` returns True, `ask` gets the engine's Cancelled. `cache_statement` finds earlier
    answers. `at_once` limits the pairs in work, and the calls in flight. Raises Incomplete if an
    account refuses every call or a judge's answers are unusable, by the rules of campaigns
    (judges.domain.refusals): after all calls in flight have ended and their answers are stored.
    """
    refusal = Refusal()

    async def main() -> list[T]:
        holder, folder = process_name(), settings.VAR / "spool"
        writer = ResultWriter(database_parameters(), folder)
        writer.start()
        await writer.ready()
        limits = RateLimits(lambda: Redis.from_url(settings.REDIS_URL), settings.PREFIX, holder)
        sending = asyncio.Semaphore(at_once)
        tools = Tools(writer, Cache(writer, cache_statement), limits, sending, holder, settings.RETRY_SECONDS)
        for account, limit in plan.limits.items():
            limits.account(account).limit = limit
        budget = Budget(writer, plan.campaign, holder, LEASE_S)
        budget.apply_plan(plan)
        budget_task = asyncio.create_task(_keep_budget(budget))
        try:
            # The answers that a dead process of the same command received are in the cache before any call is repeated.
            await recover_answers(writer, folder)
            await budget.look()
            for judge in plan.voters:
                await asyncio.to_thread(load_provider, judge.provider)
                open_provider(judge)
            caller = Caller(
                tools, plan, budget, lambda: refusal.is_known or should_stop(), refusal.note, puts_back=False
            )
            permits, count = asyncio.Semaphore(at_once), 0

            async def ask_about(claimed: Claimed) -> T:
                nonlocal count
                bind_contextvars(**plan.log_fields(claimed.pair))  # for this task alone
                async with permits:
                    answer = await ask(caller, claimed)
                count += 1
                done(count)
                return answer

            results = await asyncio.gather(*map(ask_about, pairs), return_exceptions=True)
            if refusal.is_known:
                raise Incomplete(refusal.reason or _("An account rejects every call"))
            for result in results:
                if isinstance(result, BaseException):
                    raise result
            await limits.trials.forget_start(plan.start)
            return [result for result in results if not isinstance(result, BaseException)]
        finally:
            budget_task.cancel()
            await budget.close()
            await close_providers()
            await limits.close()
            await asyncio.to_thread(writer.stop)

    return asyncio.run(main())


async def _keep_budget(budget: Budget) -> None:
    """Renew this process's reservations, which would expire otherwise, and read the limits again."""
    while True:
        await asyncio.sleep(LEASE_S / 4)
        await budget.writer.ask(partial(renew_reservations, holder=budget.holder, lease=LEASE_S))
        # Limits that admins set meanwhile apply to a run that began without them.
        await budget.look()


@dataclass(frozen=True, slots=True)
class InlineResult(Generic[T]):
    """Answers about pairs, the number of pairs without one, and the campaign with its calls and cost."""

    answers: Mapping[int, T]  # By pair.
    lost: int
    campaign: Campaign
    calls: int
    cached: int
    cost: float
    unpriced: int  # Calls of unknown price, which are not in `cost`.
    spent: bool  # The limit of money or calls was reached before the end.


def ask_inline(
    collection: Collection,
    configuration: Configuration,
    purpose: str,
    pairs: Sequence[int],
    ask: Callable[[Caller, Claimed], Awaitable[T | None]],
    *,
    budget: float | None = None,
    max_calls: int | None = None,
    done: Callable[[int], None] = lambda count: None,
) -> InlineResult[T]:
    """Ask about each pair, and return the answers. A result of None, and a used-up budget, count as lost.

    `done` gets the number of ended pairs. Raises Incomplete, as `run_inline` does.

    1. Create the finished campaign, with the pairs as its work.
    2. Ask about each pair, within the budget.
    3. Mark the pairs as labelled or failed, and read the campaign's counters.
    """
    campaign = open_finished_campaign(collection, configuration, f"{configuration.panel}, {purpose}", budget, max_calls)
    # These leases are never renewed: a day is longer than any command runs.
    until = timezone.now() + timedelta(days=1)
    lease = {"state": Work.State.RUNNING, "fence": 1, "claims": 1, "lease_until": until}
    work = Work.objects.bulk_create(Work(campaign=campaign, pair_id=pair, **lease) for pair in pairs)
    by_id = Pair.objects.select_related("query", "document").in_bulk(list(pairs))
    counters.add(campaign.pk, "pairs", len(pairs))
    claimed_pairs = [
        Claimed(row.pk, pair.pk, 1, 0, pair.query_id, pair_inputs(campaign, pair.query, pair.document))
        for row in work
        if (pair := by_id[row.pair_id])
    ]
    plan = plans.load_plan(campaign.pk)
    assert plan is not None
    is_spent = False

    async def ask_within_budget(caller: Caller, claimed: Claimed) -> T | None:
        nonlocal is_spent
        try:
            return await ask(caller, claimed)
        except BudgetExhausted:
            # The other pairs continue: their answers may be in the cache, which costs nothing.
            is_spent = True
            return None

    connection.close()
    try:
        results = run_inline(plan, claimed_pairs, ask_within_budget, done=done)
    except Incomplete:
        _finish_campaign(campaign, {}, len(claimed_pairs))
        raise
    answers = {
        claimed.pair: answer for claimed, answer in zip(claimed_pairs, results, strict=True) if answer is not None
    }
    lost_count = len(claimed_pairs) - len(answers)
    _finish_campaign(campaign, answers, lost_count)
    sums = counters.read(campaign.pk)
    calls, cached, unpriced = (int(sums[key]) for key in ("calls", "calls_cached", "calls_without_price"))
    return InlineResult(answers, lost_count, campaign, calls, cached, sums["cost"], unpriced, is_spent)


def open_finished_campaign(
    collection: Collection, configuration: Configuration, purpose: str, budget: float | None, max_calls: int | None
) -> Campaign:
    """Create the campaign to which this process's calls belong; `purpose` is shown in place of its panel."""
    return Campaign.objects.create(
        collection=collection,
        rubric=collection.rubric,
        instruction=collection.instruction,
        state=Campaign.State.FINISHED,
        budget=budget,
        max_calls=max_calls,
        **configuration.values | {"panel": purpose[:100]},
    )


def _finish_campaign(campaign: Campaign, answers: Mapping[int, T], lost_count: int) -> None:
    work = Work.objects.filter(campaign=campaign)
    work.filter(pair__in=answers).update(state=Work.State.LABELLED, ended_at=Now(), lease_until=None)
    work.exclude(pair__in=answers).update(state=Work.State.FAILED, reason="error", ended_at=Now(), lease_until=None)
    Campaign.objects.filter(pk=campaign.pk).update(finished_at=Now())
    counters.add(campaign.pk, "written", len(answers))
    counters.add(campaign.pk, "failed", lost_count)
