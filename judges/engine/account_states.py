"""State of the judges' accounts in Redis, as the workers' limits keep it: for pages, and for resuming a campaign."""

import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass

from django.conf import settings
from redis.exceptions import RedisError

from jobs.notifications import redis_client
from judges.engine.limits import limit_keys

Account = tuple[str, str, str]  # Provider, base URL and the name of the key's environment variable.

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AccountState:
    """State of a provider's account as the workers' limits keep it."""

    name: str
    calls_in_flight: int
    errors: int  # Errors in a row.
    pause_seconds: int  # Seconds until the rate limit allows the next call; 0 if it is allowed now.
    open_seconds: int  # Seconds until the open circuit breaker lets a call try the account; 0 for now.
    is_open: bool  # Whether the circuit breaker is open, because the account does not respond.
    failing_since: float = 0.0  # Time of the first of these errors, in seconds since 1970; 0: there is none.


def read_account_states(accounts: Iterable[Account]) -> dict[Account, AccountState]:
    """Return the state of each account, in the order of their names; an empty dict if Redis cannot be reached."""
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
        return {}
    now = time.time() * 1000
    account_states = {}
    for index, account in enumerate(accounts):
        state, counts = replies[2 * index : 2 * index + 2]
        # Among the numbers is the last error, which is text.
        numbers = {key.decode(): float(value) for key, value in state.items() if key != b"said"}
        seconds = {name: max(0, round((numbers.get(name, 0) - now) / 1000)) for name in ("paused_until", "open_until")}
        account_states[account] = AccountState(
            name=" ".join(part for part in account if part),
            calls_in_flight=sum(map(int, counts)),
            errors=int(numbers.get("errors", 0)),
            pause_seconds=seconds["paused_until"],
            open_seconds=seconds["open_until"],
            is_open=numbers.get("opened", 0) > 0,
            failing_since=numbers.get("failing_since", 0) / 1000,
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
