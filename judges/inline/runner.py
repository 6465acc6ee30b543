"""A bounded number of questions asked by this process itself, without workers: every attempt is a row all the same."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from django.conf import settings
from redis.asyncio import Redis

from judges.campaigns import counters
from judges.costs.budget import Budget
from judges.engine.answers import recover_answers
from judges.engine.cache import FIND, Cache
from judges.engine.calls import Caller, Tools
from judges.engine.leases import Claimed
from judges.engine.limits import RateLimits, process_name
from judges.engine.plan import Plan
from judges.engine.writer import ResultWriter
from judges.providers import close_providers, load_provider, open_provider
from judges.tasks import database_parameters

T = TypeVar("T")
AT_ONCE = 32
LEASE_S = 120.0


def run_inline(
    plan: Plan,
    held: Sequence[Claimed],
    ask: Callable[[Caller, Claimed], Awaitable[T]],
    *,
    done: Callable[[int], None] = lambda count: None,
    stopped: Callable[[], bool] = lambda: False,
    known: str = FIND,
) -> list[T]:
    """What `ask` makes of each pair, in their order. `done` is told how many have ended.

    Once `stopped` says so `ask` gets the engine's Cancelled. `known`: the statement that finds earlier answers.
    """

    async def main() -> list[T]:
        holder, folder = process_name(), settings.VAR / "spool"
        writer = ResultWriter(database_parameters(), folder, counters.random_shard())
        writer.start()
        await writer.ready()
        limits = RateLimits(lambda: Redis.from_url(settings.REDIS_URL), settings.PREFIX, holder)
        sending = asyncio.Semaphore(AT_ONCE)
        tools = Tools(writer, Cache(writer, known), limits, sending, holder, settings.RETRY_SECONDS)
        for account, limit in plan.limits.items():
            limits.account(account).limit = limit
        budget = Budget(writer, plan.campaign, holder, LEASE_S)
        budget.apply_plan(plan)
        try:
            # What a dead process of the same command had received is in the cache before anything is asked again.
            await recover_answers(writer, folder)
            await budget.look()
            for judge in plan.voters:
                await asyncio.to_thread(load_provider, judge.provider)
                open_provider(judge)
            return await _ask_all(Caller(tools, plan, budget, stopped), held, ask, done)
        finally:
            await budget.close()
            await close_providers()
            await limits.close()
            await asyncio.to_thread(writer.stop)

    return asyncio.run(main())


async def _ask_all(
    caller: Caller, held: Sequence[Claimed], ask: Callable[[Caller, Claimed], Awaitable[T]], done: Callable[[int], None]
) -> list[T]:
    room, ended = asyncio.Semaphore(AT_ONCE), 0

    async def one(claimed: Claimed) -> T:
        nonlocal ended
        async with room:
            answer = await ask(caller, claimed)
        ended += 1
        done(ended)
        return answer

    results = await asyncio.gather(*map(one, held), return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]
