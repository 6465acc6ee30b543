"""Live workers of queues, which register in Redis every two seconds, and their current work."""

import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from redis.exceptions import RedisError

from jobs.notifications import is_redis_unavailable, redis_client, redis_key
from jobs.system import is_running

LIVE_S = 10.0  # A worker of another machine that has not registered for so long is gone.
# A worker of this machine is live while its process is: a busy machine may delay its registration.
EXPIRY_S = 600.0
SHOWN = 3  # Activities that a message names.


@dataclass(frozen=True, slots=True)
class Worker:
    """A live worker: its process, its number of concurrent jobs, and their devices."""

    host: str
    pid: int
    slots: int
    devices: tuple[str, ...] = ()


def _workers_key(queue: str) -> str:
    return redis_key("workers", queue or settings.CELERY_TASK_DEFAULT_QUEUE)


def _worker_member(slots: int, devices: tuple[str, ...]) -> str:
    return json.dumps([socket.gethostname(), os.getpid(), slots, devices])


def register_worker(queue: str, slots: int, devices: tuple[str, ...] = ()) -> None:
    """Record that this process is a live worker of the queue."""
    redis_client().zadd(_workers_key(queue), {_worker_member(slots, devices): time.time()})
    # Killed workers do not deregister, and the set would grow forever.
    redis_client().zremrangebyscore(_workers_key(queue), "-inf", time.time() - EXPIRY_S)


def deregister_worker(queue: str, slots: int, devices: tuple[str, ...] = ()) -> None:
    """Record that this worker claims no more jobs."""
    redis_client().zrem(_workers_key(queue), _worker_member(slots, devices))


def live_workers(queue: str = "") -> list[Worker]:
    """Return the workers that serve a queue of this instance, by default the one that judges."""
    since = time.time() - EXPIRY_S
    rows: list[Any] = redis_client().zrangebyscore(_workers_key(queue), since, "+inf", withscores=True)
    live = []
    for member, seen_at in rows:
        host, pid, slots, devices = json.loads(member)
        # That a worker of this machine was killed is known at once.
        if is_running(pid) if host == socket.gethostname() else seen_at > time.time() - LIVE_S:
            live.append(Worker(host, pid, slots, tuple(devices)))
    return live


@contextmanager
def at_work(activity: str, queue: str = "") -> Iterator[None]:
    """Record the current activity of this process of a worker, to be shown while jobs wait."""
    key = redis_key("busy", queue or settings.CELERY_TASK_DEFAULT_QUEUE)
    member = json.dumps([socket.gethostname(), os.getppid(), os.getpid()])
    # Only information for people: the work continues without Redis.
    with suppress(RedisError, OSError):
        redis_client().hset(key, member, json.dumps([time.time(), activity]))
    try:
        yield
    finally:
        with suppress(RedisError, OSError):
            redis_client().hdel(key, member)


def work_in_progress(queue: str = "") -> list[str]:
    """Return the activities of live workers' processes, the longest first."""
    key = redis_key("busy", queue or settings.CELERY_TASK_DEFAULT_QUEUE)
    rows: dict[Any, Any] = redis_client().hgetall(key)
    alive = {(worker.host, worker.pid) for worker in live_workers(queue)}
    activities = []
    for member, value in rows.items():
        host, worker, pid = json.loads(member)
        if (host, worker) in alive and (host != socket.gethostname() or is_running(pid)):
            activities.append(tuple(json.loads(value)))
        else:
            redis_client().hdel(key, member)  # Its process was killed.
    return [activity for _, activity in sorted(activities)]


def describe_wait(queue: str = "") -> str:
    """Describe why a waiting job is not claimed; "" where a worker is free to claim it."""
    slots, works = sum(worker.slots for worker in live_workers(queue)), work_in_progress(queue)
    if not slots:
        return "no worker serves this instance"
    if len(works) < slots:
        return ""
    summary = ", ".join(works[:SHOWN]) + (f" and {len(works) - SHOWN} more" if len(works) > SHOWN else "")
    return f"{summary} before it, on " + ("the only worker" if slots == 1 else f"all {slots} workers")


def has_workers(queue: str = "") -> bool:
    """Return whether a worker serves the queue; False while Redis is not reachable."""
    try:
        return not is_redis_unavailable() and bool(live_workers(queue))
    except (RedisError, OSError):
        return False
