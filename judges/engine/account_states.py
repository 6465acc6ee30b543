"""State of judges' accounts, as the workers' limits in Redis say it: for pages, and for who resumes a campaign."""

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
    """Read the state of each account, by its name; nothing while Redis is away.

    `out`: calls that are in flight; `errors`: in a row; `paused_s`, `open_s`: seconds until it is asked again, 0: now.
    """
    # Sorted, so that the page lists accounts in the same order each time it asks.
    accounts = sorted(set(accounts))
    # One round trip for all accounts. No transaction: the figures are only shown.
    try:
        pipe = redis_client().pipeline(transaction=False)
        for account in accounts:
            state, _processes, held, _window = limit_keys(settings.PREFIX, account)
            pipe.hgetall(state)
            pipe.hvals(held)
        answers = pipe.execute()
    except (RedisError, OSError):
        return []
    return [_account_state(account, *answers[2 * at : 2 * at + 2]) for at, account in enumerate(accounts)]


def end_pauses(accounts: Iterable[Account]) -> None:
    """Let the accounts be asked at once, however long they asked to wait: somebody may have raised their limit."""
    try:
        pipe = redis_client().pipeline(transaction=False)
        for account in accounts:
            pipe.hdel(limit_keys(settings.PREFIX, account)[0], "paused_until", "begun_at", "next_at")
        pipe.execute()
    except (RedisError, OSError) as error:
        logger.warning("Redis is away, accounts wait as long as they asked for: %s", error)


def _account_state(account: Account, state: dict[bytes, bytes], held: list[bytes]) -> dict[str, Any]:
    now = time.time() * 1000
    number = {key.decode(): float(value) for key, value in state.items()}

    def left(field: str) -> int:
        return max(0, round((number.get(field, 0) - now) / 1000))

    return {
        "name": " ".join(part for part in account if part),
        "out": sum(int(one) for one in held),
        "errors": int(number.get("errors", 0)),
        "paused_s": left("paused_until"),
        "open_s": left("open_until"),
        "is_open": number.get("opened", 0) > 0,
    }
