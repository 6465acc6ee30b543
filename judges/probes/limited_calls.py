"""Calls to judges outside campaigns, without a cache, within the limits of their accounts: canaries and self-checks."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from time import perf_counter
from typing import TypeVar

from django.conf import settings
from redis.asyncio import Redis

from judges.campaigns.estimates import CampaignSize, Estimate, ballots_of, estimate_campaign
from judges.campaigns.token_mixes import mixes_of
from judges.engine.calls import update_limits
from judges.engine.limits import LONGEST_PAUSE_S, RateLimits, process_name
from judges.engine.plan import limit_of
from judges.errors import ProviderError
from judges.providers import close_providers, load_provider, open_provider
from judges.records import Inputs, Judge, ModelRequest, Reply

T = TypeVar("T")
Done = Callable[[int], None]  # Called with the number of answers so far.
AT_ONCE = 16
TRIES = 3
LONGEST_WAIT_S = 30.0


def forecast_votes(judges: Sequence[Judge], pairs: Sequence[Inputs], repeats: int = 1) -> Estimate:
    """Estimate the calls and the cost of `repeats` votes of each judge on each pair."""
    mixes, ballots = mixes_of(judges), ballots_of(judges, pairs)
    size = CampaignSize(pairs=len(pairs) * repeats, policy="ensemble", voters=judges, mixes=mixes, ballots=ballots)
    return estimate_campaign(size, [])


def run_within_limits(judges: Sequence[Judge], work: Callable[[RateLimits], Awaitable[T]]) -> T:
    """Run `work` in a new event loop, with the limits of these judges' accounts."""
    # Read before the loop starts, since Django refuses queries inside a running one.
    limits = {judge.account: limit_of(judge.account) for judge in judges}

    async def main() -> T:
        rate_limits = RateLimits(lambda: Redis.from_url(settings.REDIS_URL), settings.PREFIX, process_name())
        try:
            for judge in judges:
                rate_limits.account(judge.account).limit = limits[judge.account]
                await asyncio.to_thread(load_provider, judge.provider)
            return await work(rate_limits)
        finally:
            await close_providers()
            await rate_limits.close()

    return asyncio.run(main())


async def try_request(limits: RateLimits, request: ModelRequest) -> AsyncIterator[tuple[Reply | ProviderError, int]]:
    """Send a request, with retries if the provider fails; yield the result and the milliseconds of each attempt.

    The last attempt counts. Raises CircuitOpen for an account that does not answer.
    """
    account, judge = limits.account(request.judge.account), request.judge
    # A token has at least one byte, so the bytes and the answer's limit bound the tokens of a call.
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
            return  # Too long for a user who waits for the result.
        wait = random.uniform(0, min(LONGEST_WAIT_S, settings.RETRY_SECONDS * 2**number))
        await asyncio.sleep((result.retry_after or 0.0) + wait)
