"""allauth counts tries under a lock that gives up after a second; here it waits.

A class that signs in from one address takes the lock of that address forty times in the same
second. allauth's polls a row of the cache, and on a busy machine some never get it: they were told
of too many attempts that they had not made. It has no switch for another lock, so its function is
replaced.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from allauth.core.internal import ratelimit
from django.conf import settings
from django.core.cache import cache
from django.db import connection, transaction
from django.http import HttpRequest

from jobs.connections import without_connection
from store.sql import execute

APP = "allauth.account"
# Of all threads of a process one waits in the database: others would each hold a connection.
_line = threading.Lock()


@contextmanager
def lock_key(cache_key: str) -> Iterator[bool]:
    """Hold the lock of a counter for the statements within; always yields True."""
    # Until the transaction ends; others wait in the order in which they came.
    statement = "SELECT pg_advisory_xact_lock(hashtextextended(%(key)s, 0))"
    if connection.in_atomic_block:
        # Whoever is first in the line may wait for what this transaction holds.
        execute(statement, key=cache_key)
        yield True
        return
    with without_connection():
        _line.acquire()
    try:
        with transaction.atomic():
            execute(statement, key=cache_key)
            yield True
    finally:
        _line.release()


def count(request: HttpRequest, action: str, per: str, *, key: str | None = None) -> ratelimit.RateLimitUsage | None:
    """Count an act by those of its limits that are `per` address ("ip") or key; None where one of them is reached."""
    config = {action: ",".join(limit for limit in _limits(action) if limit.endswith(f"/{per}"))}
    return ratelimit.consume(request, app=APP, action=action, config=config, key=key)


def is_free(request: HttpRequest, action: str) -> bool:
    """Return whether the address has an act left by the limits of an act; without a lock, as nothing is counted."""
    for rate in ratelimit.parse_rates(",".join(limit for limit in _limits(action) if limit.endswith("/ip"))):
        history = cache.get(ratelimit.get_cache_key(request, app=APP, action=action, rate=rate), [])
        if not ratelimit.apply_rate(history, time.time(), rate, dry_run=True)[0]:
            return False
    return True


def _limits(action: str) -> list[str]:
    return [limit.strip() for limit in settings.ACCOUNT_RATE_LIMITS[action].split(",")]


ratelimit.cache_lock = lock_key
