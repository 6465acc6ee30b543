"""Messages to workers that a job waits. A lost message only costs seconds, since workers also poll (jobs.tasks)."""

import logging
import time
from functools import cache
from typing import Any

import kombu.exceptions
from celery import Celery
from django.conf import settings
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

# One retry, for a connection that Redis has closed; redis-py's default retries take ten seconds.
QUICK: dict[str, Any] = {"socket_connect_timeout": 1.0, "socket_timeout": 1.0, "retry": Retry(NoBackoff(), 1)}
RETRY_S = 5.0  # Interval at which an unavailable Redis is tried again.

logger = logging.getLogger(__name__)
_unavailable_until = 0.0


@cache
def redis_client() -> Redis:
    """Return this process's Redis client."""
    return Redis.from_url(settings.REDIS_URL, **QUICK)


def redis_key(*parts: object) -> str:
    """Return a key in Redis with the prefix of this instance."""
    return ":".join(str(part) for part in (settings.PREFIX, *parts))


def is_redis_unavailable() -> bool:
    """Return whether Redis does not answer, or did not answer within the last RETRY_S seconds."""
    global _unavailable_until
    if time.monotonic() < _unavailable_until:
        return True
    try:
        redis_client().ping()
    except (RedisError, OSError) as error:
        logger.warning("Redis is away: %s", error)
        _unavailable_until = time.monotonic() + RETRY_S
        return True
    return False


@cache
def message_sender() -> Celery:
    """Return a Celery application that only sends messages."""
    # Not the current application, which in a worker is that of config.celery.
    app = Celery("quorum", set_as_current=False)
    app.config_from_object("django.conf:settings", namespace="CELERY")
    return app


def notify(task: str, *args: Any, queue: str | None = None) -> bool:
    """Send a message to the workers of a task; False while Redis is not reachable.

    Inside a transaction call it through `transaction.on_commit`.
    """
    if is_redis_unavailable():
        return False
    try:
        message_sender().send_task(task, args=list(args), queue=queue, ignore_result=True)
    except (kombu.exceptions.OperationalError, RedisError, OSError) as error:
        logger.warning("Redis is away, %s was not sent: %s", task, error)
        return False
    return True
