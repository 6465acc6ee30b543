"""A waiting lock for allauth's counters of attempts, in place of one that gives up after a second.

A class that signs in from one address takes the lock of this address forty times in a second.
allauth's lock polls a row of the cache, and on a busy machine some people never got it and were
refused for too many attempts. allauth has no setting for another lock, so its function is replaced.
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
# Only one thread of a process waits in the database, because each would hold a connection.
_line = threading.Lock()


@contextmanager
def lock_key(cache_key: str) -> Iterator[bool]:
    """Hold the lock of a counter in the context; always yields True."""
    # Held until the transaction ends; others wait in their order of arrival.
    statement = "SELECT pg_advisory_xact_lock(hashtextextended(%(key)s, 0))"
    if connection.in_atomic_block:
        # The thread that holds `_line` may wait for a lock of this transaction, so do not wait for it here.
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
    """Count an attempt for the limits of an action `per` address ("ip") or key; None where a limit is reached."""
    config = {action: ",".join(limit for limit in _limits(action) if limit.endswith(f"/{per}"))}
    return ratelimit.consume(request, app=APP, action=action, config=config, key=key, limit_get=True)


def is_free(request: HttpRequest, action: str) -> bool:
    """Return whether the address is below the limits of an action; takes no lock, because nothing is counted."""
    for rate in ratelimit.parse_rates(",".join(limit for limit in _limits(action) if limit.endswith("/ip"))):
        history = cache.get(ratelimit.get_cache_key(request, app=APP, action=action, rate=rate), [])
        if not ratelimit.apply_rate(history, time.time(), rate, dry_run=True)[0]:
            return False
    return True


def _limits(action: str) -> list[str]:
    return [limit.strip() for limit in settings.ACCOUNT_RATE_LIMITS[action].split(",")]


ratelimit.cache_lock = lock_key
