"""Wake-ups: the messages that Celery carries, and who is there to read them (MECHANICS M3).

The truth of what is to be done stands in PostgreSQL; a lost message costs nothing. Every sending begins a new
generation: a drain that carries an older one ends and does not queue itself again, so messages never pile up.
"""

import json
import logging
import os
import socket
import time
from dataclasses import dataclass
from functools import cache
from typing import Any

import kombu.exceptions
from celery import Celery
from django.conf import settings
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from jobs.processes import lives

DRAIN = "judges.drain"
REFUSED = "refused"
"""judges.engine.limits: campaigns that an account has just refused; a start takes its own out."""
LIVE_S = 10.0
"""A worker, or a drain, that has not been heard of for so long is gone."""
MOST = 64
TRIES = 3
BROKEN_S = 60.0
FORGET_S = 7 * 86_400
QUICK: dict[str, Any] = {"socket_connect_timeout": 1.0, "socket_timeout": 1.0, "retry": Retry(NoBackoff(), 1)}
"""One more try, for a connection that Redis closed meanwhile; redis-py's own tries take ten seconds."""

AWAY_S = 5.0
"""Redis that was found away is asked again after so long."""

logger = logging.getLogger(__name__)
_away_until = 0.0


@dataclass(frozen=True, slots=True)
class Worker:
    """A live worker of this instance and how many drains it can work on at once."""

    host: str
    pid: int
    slots: int


@cache
def redis() -> Redis:
    """The connection pool of this process. That Redis is away is known at once: pages go on without it."""
    return Redis.from_url(settings.REDIS_URL, **QUICK)


def _key(*parts: object) -> str:
    return ":".join(str(part) for part in (settings.PREFIX, *parts))


def say_alive(slots: int) -> None:
    """This process is a worker and lives."""
    member = json.dumps([socket.gethostname(), os.getpid(), slots])
    redis().zadd(_key("workers"), {member: time.time()})
    redis().zremrangebyscore(_key("workers"), "-inf", time.time() - 60)


def say_gone(slots: int) -> None:
    """This worker takes no more messages."""
    redis().zrem(_key("workers"), json.dumps([socket.gethostname(), os.getpid(), slots]))


def live_workers() -> list[Worker]:
    """Workers that serve this instance's queue."""
    members: list[Any] = redis().zrangebyscore(_key("workers"), time.time() - LIVE_S, "+inf")
    workers = [Worker(*json.loads(member)) for member in members]
    return [worker for worker in workers if worker.host != socket.gethostname() or lives(worker.pid)]


def is_away() -> bool:
    """Redis does not answer."""
    global _away_until
    if time.monotonic() < _away_until:
        return True
    try:
        redis().ping()
    except (RedisError, OSError) as error:
        logger.warning("Redis is away: %s", error)
        _away_until = time.monotonic() + AWAY_S
        return True
    return False


def has_workers() -> bool:
    """Somebody serves this instance's queue. While Redis is away nobody can be asked to."""
    return not is_away() and bool(live_workers())


@cache
def messenger() -> Celery:
    """Sends messages by their task's name: whoever sends one need not load the worker's application."""
    app = Celery("quorum", set_as_current=False)
    app.config_from_object("django.conf:settings", namespace="CELERY")
    return app


def post(task: str, *args: Any) -> bool:
    """Send a message; False while Redis is away. What hangs on it stands in a row, or is asked for once more."""
    if is_away():
        return False
    try:
        messenger().send_task(task, args=list(args), ignore_result=True)
    except (kombu.exceptions.OperationalError, RedisError, OSError) as error:
        logger.warning("Redis is away, %s was not sent: %s", task, error)
        return False
    return True


def _post(campaign: int, generation: int) -> None:
    messenger().send_task(DRAIN, args=[campaign, generation], ignore_result=True)


def send(campaign: int) -> None:
    """Wake one drain for each worker slot; call it through `transaction.on_commit` inside a transaction.

    While Redis is away nothing is sent: workers look for running campaigns by themselves once it is back.
    """
    if is_away():
        return
    slots = sum(worker.slots for worker in live_workers()) or 1
    redis().srem(_key(REFUSED), campaign)
    generation = time.time_ns()
    redis().set(_key("wake", campaign), generation, ex=FORGET_S)
    for _ in range(min(slots, MOST)):
        _post(campaign, generation)


def again(campaign: int, generation: int) -> None:
    """A drain queues itself again, unless a newer generation has taken over."""
    if is_current(campaign, generation):
        _post(campaign, generation)


def is_current(campaign: int, generation: int) -> bool:
    """Whether no newer wake-ups were sent."""
    newest = redis().get(_key("wake", campaign))
    return newest is None or int(newest) <= generation


def drain_broke(campaign: int, error: Exception) -> None:
    """A drain of the campaign ended in an error of ours; `broken` tells whoever waits for it."""
    line = " ".join(f"{type(error).__name__}: {error}".split())[:500]
    redis().rpush(_key("broken", campaign), line)
    redis().expire(_key("broken", campaign), int(BROKEN_S))


def drain_worked(campaign: int) -> None:
    """A drain of the campaign came to its end."""
    redis().delete(_key("broken", campaign))


def broken(campaign: int) -> str:
    """The last error, once so many drains in a row broke that more tries are of no use; else ""."""
    errors: list[Any] = redis().lrange(_key("broken", campaign), 0, -1)
    return errors[-1].decode() if len(errors) >= TRIES else ""


def is_drained(campaign: int) -> bool:
    """Whether somebody works on the campaign, or was woken a moment ago."""
    newest = redis().get(_key("wake", campaign))
    if newest is not None and time.time() - int(newest) / 1e9 < LIVE_S / 2:
        return True
    return bool(redis().zcount(_key("drains", campaign), time.time() - LIVE_S, "+inf"))
