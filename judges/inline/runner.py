"""A bounded number of questions asked by this process itself, without workers: every attempt is a row all the same.

The campaign that keeps them is finished from the start, so no worker takes its work. What was paid for is found in
the cache when the same is asked again, also after a kill: what a dead process had received is stored first.
"""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from redis.asyncio import Redis

from judges.campaigns import counters
from judges.costs.budget import Budget
from judges.engine.cache import FIND, Cache
from judges.engine.calls import Caller, Tools
from judges.engine.leases import Claimed
from judges.engine.limits import RateLimits
from judges.engine.plan import Plan
from judges.engine.recovery import recover_answers
from judges.engine.writer import ResultWriter
from judges.providers import close_providers, load_provider, open_provider

T = TypeVar("T")
AT_ONCE = 32
LEASE_S = 120.0


def run_inline(
    plan: Plan,
    held: Sequence[Claimed],
    ask: Callable[[Caller, Claimed], Awaitable[T]],
    *,
    dsn: dict[str, Any],
    redis_url: str,
    prefix: str,
    folder: Path,
    retry_s: float,
    done: Callable[[int], None] = lambda count: None,
    stopped: Callable[[], bool] = lambda: False,
    known: str = FIND,
) -> list[T]:
    """What `ask` makes of each pair, in their order. `done` is told how many have ended.

    `stopped`: nothing more may be sent; `ask` gets the engine's Stopped. `known`: the statement that finds earlier
    answers.
    """

    async def main() -> list[T]:
        holder = f"{socket.gethostname()[:30]}:{os.getpid()}:{os.urandom(4).hex()}"
        writer = ResultWriter(dsn, folder, counters.random_shard())
        writer.start()
        await writer.ready()
        limits = RateLimits(lambda: Redis.from_url(redis_url), prefix, holder)
        tools = Tools(writer, Cache(writer, known), limits, asyncio.Semaphore(AT_ONCE), holder, retry_s)
        for account, limit in plan.limits.items():
            limits.account(account).limit = limit
        budget = Budget(writer, plan.campaign, holder, LEASE_S)
        budget.apply_plan(plan)
        try:
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
