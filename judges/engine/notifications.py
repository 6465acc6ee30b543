"""Notifications of the engine: the messages that send workers to a campaign.

What is to be done is recorded in PostgreSQL alone, so a lost message costs nothing. Each notification
begins a new generation: a message of an older one ends without queueing itself again, so messages
never pile up.
"""

import logging
import time
from typing import Any

import kombu.exceptions
from redis.exceptions import RedisError
from structlog.contextvars import get_contextvars

from jobs.notifications import is_redis_unavailable, message_sender, redis_client, redis_key
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
    """Send every worker slot a message about the campaign. Within a transaction, call it by `transaction.on_commit`."""
    if is_redis_unavailable():
        return  # workers look for running campaigns by themselves once Redis is back
    # Redis may fail at any of these steps. The caller's work is committed: an error here would say that it failed.
    try:
        slots = sum(worker.slots for worker in live_workers()) or 1
        generation = time.time_ns()
        redis_client().set(redis_key("wake", campaign), generation, ex=FORGET_S)
        redis_client().zrem(redis_key("due"), campaign)
        if request_id := get_contextvars().get("request_id"):
            redis_client().set(redis_key("request", campaign), request_id, ex=FORGET_S)
        # One message for each worker slot, since a time slice occupies one process.
        for _ in range(min(slots, MOST)):
            queue_run(campaign, generation)
    except (kombu.exceptions.OperationalError, RedisError, OSError) as error:
        logger.warning("Redis is away, workers were not told of a campaign: %s", error)


def queue_run(campaign: int, generation: int) -> None:
    message_sender().send_task(DRAIN, args=[campaign, generation], ignore_result=True)


def is_current(campaign: int, generation: int) -> bool:
    """Return whether this is the newest wake-up of the campaign; workers drop older ones."""
    newest = redis_client().get(redis_key("wake", campaign))
    # A generation is a time in nanoseconds: newer wake-ups make older messages end without work.
    return newest is None or int(newest) <= generation


def record_error(campaign: int, error: Exception) -> None:
    """Store an unexpected error that ended a time slice of the campaign, for the command that waits for it."""
    line = " ".join(f"Unexpected error: {error}".split())[:500]
    # A list, because only several errors in a row show that more tries are of no use.
    redis_client().rpush(redis_key("broken", campaign), line)
    redis_client().expire(redis_key("broken", campaign), int(BROKEN_S))


def clear_errors(campaign: int) -> None:
    """Forget the campaign's errors after a time slice that ended without one."""
    redis_client().delete(redis_key("broken", campaign))


def repeated_error(campaign: int) -> str:
    """Return the last error once TRIES time slices in a row ended with one; "" before that."""
    errors: list[Any] = redis_client().lrange(redis_key("broken", campaign), 0, -1)
    return errors[-1].decode() if len(errors) >= TRIES else ""


def wake_later(campaign: int, seconds: float) -> None:
    """Notify the campaign's workers after `seconds`; until then it occupies none."""
    # Never longer than an hour: a lost key or a clock that was set costs no more.
    redis_client().zadd(redis_key("due"), {str(campaign): time.time() + min(seconds, LONGEST_REST_S)})


def pop_due() -> list[int]:
    """Return the campaigns whose wait is over, each to one caller only."""
    due_campaigns: list[Any] = redis_client().zrangebyscore(redis_key("due"), "-inf", time.time())
    return [int(campaign) for campaign in due_campaigns if redis_client().zrem(redis_key("due"), campaign)]


def rests(campaign: int) -> bool:
    """Return whether the campaign waits until a known time."""
    due: Any = redis_client().zscore(redis_key("due"), campaign)
    return due is not None and due > time.time()


def is_drained(campaign: int) -> bool:
    """Return whether a worker is at work on the campaign, was notified a moment ago, or will be after its wait."""
    if is_worked_on(campaign):
        return True
    newest = redis_client().get(redis_key("wake", campaign))
    return newest is not None and time.time() - int(newest) / 1e9 < LIVE_S / 2


def describe_wait(campaign: Campaign) -> str:
    """Describe what a running campaign waits for; "" if a worker is at work on it or free."""
    # That Redis is away, or that no worker runs, is reported elsewhere.
    try:
        if is_redis_unavailable() or is_worked_on(campaign.pk) or not live_workers():
            return ""
        return "" if campaign.full_name in work_in_progress() else workers_wait()
    except (RedisError, OSError):
        return ""


def is_worked_on(campaign: int) -> bool:
    """Return whether a worker is at work on the campaign, or will be after its wait."""
    return rests(campaign) or bool(redis_client().zcount(redis_key("drains", campaign), time.time() - LIVE_S, "+inf"))
