"""State of the judges' accounts in Redis, as the workers' limits keep it: for pages, and for resuming a campaign."""

import logging
import time
from collections.abc import Iterable
from typing import Any

from django.conf import settings
from redis.exceptions import RedisError

from jobs.notifications import redis_client
from judges.engine.limits import limit_keys

Account = tuple[str, str, str]

logger = logging.getLogger(__name__)


def read_account_states(accounts: Iterable[Account]) -> list[dict[str, Any]]:
    """Read the state of each account, ordered by name; an empty list while Redis is away.

    `out` is the number of calls in flight, `errors` the errors in a row, and `paused_s` and `open_s` are the seconds
    until the account is called again (0: now).
    """
    # Sorted, so that the page lists accounts in the same order each time it asks.
    accounts = sorted(set(accounts))
    # One round trip for all accounts. No transaction: the figures are only shown.
    try:
        pipe = redis_client().pipeline(transaction=False)
        for account in accounts:
            state, _processes, calls_out, _window = limit_keys(settings.PREFIX, account)
            pipe.hgetall(state)
            pipe.hvals(calls_out)
        replies = pipe.execute()
    except (RedisError, OSError):
        return []
    now = time.time() * 1000
    account_states = []
    for index, account in enumerate(accounts):
        state, counts = replies[2 * index : 2 * index + 2]
        numbers = {key.decode(): float(value) for key, value in state.items()}
        seconds = {name: max(0, round((numbers.get(name, 0) - now) / 1000)) for name in ("paused_until", "open_until")}
        account_states.append(
            {
                "name": " ".join(part for part in account if part),
                "out": sum(map(int, counts)),
                "errors": int(numbers.get("errors", 0)),
                "paused_s": seconds["paused_until"],
                "open_s": seconds["open_until"],
                "is_open": numbers.get("opened", 0) > 0,
            }
        )
    return account_states


def end_pauses(accounts: Iterable[Account]) -> None:
    """Let the accounts be called at once, however long a wait they asked for: their limits may have been raised."""
    try:
        pipe = redis_client().pipeline(transaction=False)
        for account in accounts:
            pipe.hdel(limit_keys(settings.PREFIX, account)[0], "paused_until", "begun_at", "next_at")
        pipe.execute()
    except (RedisError, OSError) as error:
        logger.warning("Redis is away, accounts wait as long as they asked for: %s", error)
