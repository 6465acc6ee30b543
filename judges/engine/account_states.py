"""How the accounts of judges are now, as the workers' limits in Redis say it; for pages, which only read."""

import time
from collections.abc import Iterable
from dataclasses import dataclass

from django.conf import settings
from redis.exceptions import RedisError

from jobs.notifications import redis_client
from judges.engine.limits import limit_keys

Account = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class AccountState:
    """One account. `out`: calls that are out; `paused_s`, `open_s`: seconds until it is asked again, 0: now."""

    name: str
    out: int = 0
    errors: int = 0  # In a row.
    paused_s: int = 0
    open_s: int = 0
    is_open: bool = False


def read_account_states(accounts: Iterable[Account]) -> list[AccountState]:
    """Read the state of each account; nothing while Redis is away."""
    accounts = sorted(set(accounts))
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


def _account_state(account: Account, state: dict[bytes, bytes], held: list[bytes]) -> AccountState:
    now = time.time() * 1000
    number = {key.decode(): float(value) for key, value in state.items()}

    def left(field: str) -> int:
        return max(0, round((number.get(field, 0) - now) / 1000))

    return AccountState(
        name=" ".join(part for part in account if part),
        out=sum(int(one) for one in held),
        errors=int(number.get("errors", 0)),
        paused_s=left("paused_until"),
        open_s=left("open_until"),
        is_open=number.get("opened", 0) > 0,
    )
