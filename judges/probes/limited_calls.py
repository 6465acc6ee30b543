"""Calls to judges without a campaign, cache or label, within the limits of their accounts: canaries and self-checks."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from time import perf_counter
from typing import TypeVar

from django.conf import settings
from redis.asyncio import Redis

from judges.campaigns.estimates import CampaignSize, Estimate, ballots_of, estimate_campaign
from judges.costs.token_mixes import mixes_of
from judges.engine.calls import update_limits
from judges.engine.limits import LONGEST_PAUSE_S, RateLimits, process_name
from judges.engine.plan import limit_of
from judges.errors import ProviderError
from judges.providers import close_providers, load_provider, open_provider
from judges.records import Inputs, Judge, ModelRequest, Reply

T = TypeVar("T")
Done = Callable[[int], None]  # Told how many answers are here.
AT_ONCE = 16
TRIES = 3
LONGEST_WAIT_S = 30.0


def forecast_votes(judges: Sequence[Judge], asked: Sequence[Inputs], repeats: int = 1) -> Estimate:
    """Return calls and cost of each judge's vote on each of these pairs, so many times."""
    mixes, ballots, pairs = mixes_of(judges), ballots_of(judges, asked), len(asked) * repeats
    size = CampaignSize(pairs=pairs, policy="ensemble", voters=judges, mixes=mixes, ballots=ballots)
    return estimate_campaign(size, [])


def run_within_limits(judges: Sequence[Judge], work: Callable[[RateLimits], Awaitable[T]]) -> T:
    """Run `work` in an event loop of its own, with the accounts of these judges."""
    # Read before the loop begins: Django's queries are not for a running one.
    limits = {judge.account: limit_of(judge.account) for judge in judges}

    async def main() -> T:
        shared = RateLimits(lambda: Redis.from_url(settings.REDIS_URL), settings.PREFIX, process_name())
        try:
            for judge in judges:
                shared.account(judge.account).limit = limits[judge.account]
                await asyncio.to_thread(load_provider, judge.provider)
            return await work(shared)
        finally:
            await close_providers()
            await shared.close()

    return asyncio.run(main())


async def try_request(shared: RateLimits, request: ModelRequest) -> AsyncIterator[tuple[Reply | ProviderError, int]]:
    """Send a request, again where its provider failed: what came of each try, and its milliseconds. The last counts.

    Raises CircuitOpen for an account that does not answer.
    """
    account, judge = shared.account(request.judge.account), request.judge
    # A token is at least one byte: bytes and the answer's limit bound what a call takes.
    texts = (request.prompt.system, request.prompt.user)
    room = sum(len(text.encode()) for text in texts) + judge.max_output_tokens
    for number in range(1, TRIES + 1):
        permit = await account.acquire(room, lambda: False)
        began, used = perf_counter(), 0
        result: Reply | ProviderError
        try:
            result = reply = await open_provider(judge).complete(request)
            used = reply.usage.input + reply.usage.output
        except ProviderError as error:
            result = error
        finally:
            account.release(permit, used)
        update_limits(account, result, permit=permit)
        yield result, int((perf_counter() - began) * 1000)
        if number == TRIES or not isinstance(result, ProviderError) or not result.retry:
            return
        if (result.retry_after or 0.0) > LONGEST_PAUSE_S:
            return  # nobody waits so long for an answer here
        wait = random.uniform(0, min(LONGEST_WAIT_S, settings.RETRY_SECONDS * 2**number))
        await asyncio.sleep((result.retry_after or 0.0) + wait)
