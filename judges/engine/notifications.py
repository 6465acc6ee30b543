"""Wake-ups of the engine: the messages that tell workers of a campaign.

The truth of what is to be done stands in PostgreSQL; a lost message costs nothing. Every sending
begins a new generation: a drain that carries an older one ends and does not queue itself again, so
messages never pile up.
"""

import logging
import time
from typing import Any

import kombu.exceptions
from redis.exceptions import RedisError
from structlog.contextvars import bind_contextvars, get_contextvars

from jobs.notifications import is_away, message_sender, redis_client, redis_key
from jobs.workers import LIVE_S, live_workers, work_in_progress
from jobs.workers import describe_wait as workers_wait
from judges.models import Campaign

DRAIN = "judges.drain"
MOST = 64
TRIES = 3
BROKEN_S = 60.0
FORGET_S = 7 * 86_400
LONGEST_REST_S = 3600.0

logger = logging.getLogger(__name__)


def notify_workers(campaign: int) -> None:
    """Wake a drain a worker slot; in a transaction by `transaction.on_commit`."""
    if is_away():
        return  # workers look for running campaigns by themselves once Redis is back
    # Redis may go at any of these steps. What asks for them is committed: an error here would say that it failed.
    try:
        slots = sum(worker.slots for worker in live_workers()) or 1
        generation = time.time_ns()
        redis_client().set(redis_key("wake", campaign), generation, ex=FORGET_S)
        redis_client().zrem(redis_key("due"), campaign)
        if request_id := get_contextvars().get("request_id"):
            redis_client().set(redis_key("request", campaign), request_id, ex=FORGET_S)
        # One message for each worker slot, since a drain occupies one process.
        for _ in range(min(slots, MOST)):
            queue_run(campaign, generation)
    except (kombu.exceptions.OperationalError, RedisError, OSError) as error:
        logger.warning("Redis is away, workers were not told of a campaign: %s", error)


def bind_request(campaign: int) -> None:
    """Let log lines name the request that last started the campaign."""
    found: Any = redis_client().get(redis_key("request", campaign))
    if found is not None:
        bind_contextvars(request_id=found.decode())


def queue_run(campaign: int, generation: int) -> None:
    message_sender().send_task(DRAIN, args=[campaign, generation], ignore_result=True)


def is_current(campaign: int, generation: int) -> bool:
    """Return whether this is the newest wake-up of the campaign; workers drop older ones."""
    newest = redis_client().get(redis_key("wake", campaign))
    # A generation is a time in nanoseconds: newer wake-ups make older messages end without work.
    return newest is None or int(newest) <= generation


def forget_failing(campaign: int) -> None:
    """Forget since when questions fail: they are asked anew (engine.trials)."""
    try:
        redis_client().delete(redis_key("failing", campaign))
    except (RedisError, OSError) as error:
        logger.warning("Redis is away, failing questions of a campaign are not forgotten: %s", error)


def record_error(campaign: int, error: Exception) -> None:
    """Keep the error of ours in which a drain of the campaign ended, for whoever waits for it."""
    line = " ".join(f"Unexpected error: {error}".split())[:500]
    # A list, because only several errors in a row mean that more tries are of no use.
    redis_client().rpush(redis_key("broken", campaign), line)
    redis_client().expire(redis_key("broken", campaign), int(BROKEN_S))


def clear_errors(campaign: int) -> None:
    """Forget the campaign's errors: a drain of it came to its end."""
    redis_client().delete(redis_key("broken", campaign))


def repeated_error(campaign: int) -> str:
    """The last error, once so many drains in a row broke that more tries are of no use; else ""."""
    errors: list[Any] = redis_client().lrange(redis_key("broken", campaign), 0, -1)
    return errors[-1].decode() if len(errors) >= TRIES else ""


def wake_later(campaign: int, seconds: float) -> None:
    """Wake the campaign's workers in so many seconds; it keeps none meanwhile."""
    # Never longer than an hour: a lost key or a clock that was set costs no more.
    redis_client().zadd(redis_key("due"), {str(campaign): time.time() + min(seconds, LONGEST_REST_S)})


def pop_due() -> list[int]:
    """Return the campaigns whose wait is over; each is given to one caller."""
    found: list[Any] = redis_client().zrangebyscore(redis_key("due"), "-inf", time.time())
    return [int(campaign) for campaign in found if redis_client().zrem(redis_key("due"), campaign)]


def rests(campaign: int) -> bool:
    """Return whether the campaign waits for something until a time that is known."""
    due: Any = redis_client().zscore(redis_key("due"), campaign)
    return due is not None and due > time.time()


def is_drained(campaign: int) -> bool:
    """Return whether a worker is at work on the campaign, was woken a moment ago, or will be when its wait is over."""
    if is_worked_on(campaign):
        return True
    newest = redis_client().get(redis_key("wake", campaign))
    return newest is not None and time.time() - int(newest) / 1e9 < LIVE_S / 2


def describe_wait(campaign: Campaign) -> str:
    """Say what a running campaign waits for; "" where a worker is or is free."""
    # That Redis is away, or that nobody works, is said elsewhere.
    try:
        if is_away() or is_worked_on(campaign.pk) or not live_workers():
            return ""
        return "" if campaign.full_name in work_in_progress() else workers_wait()
    except (RedisError, OSError):
        return ""


def is_worked_on(campaign: int) -> bool:
    """Return whether a worker is at work on the campaign, or will be when its wait is over."""
    return rests(campaign) or bool(redis_client().zcount(redis_key("drains", campaign), time.time() - LIVE_S, "+inf"))
