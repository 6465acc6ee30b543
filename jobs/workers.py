"""Live workers of queues, who say so in Redis every two seconds, and their work."""

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

from jobs.notifications import is_away, redis_client, redis_key
from jobs.system import is_running

LIVE_S = 10.0  # A worker of another machine that has not been heard of for so long is gone.
# One of this machine lives as long as its process does: a busy machine may keep it from saying so.
FORGOTTEN_S = 600.0
SHOWN = 3  # Of what workers are at.


@dataclass(frozen=True, slots=True)
class Worker:
    """A live worker: its process, jobs at once, and devices that they may ask for."""

    host: str
    pid: int
    slots: int
    devices: tuple[str, ...] = ()


def _workers_key(queue: str) -> str:
    return redis_key("workers", queue or settings.CELERY_TASK_DEFAULT_QUEUE)


def _worker_member(slots: int, devices: tuple[str, ...]) -> str:
    return json.dumps([socket.gethostname(), os.getpid(), slots, devices])


def say_alive(queue: str, slots: int, devices: tuple[str, ...] = ()) -> None:
    """Record that this process is a worker of the queue and lives."""
    redis_client().zadd(_workers_key(queue), {_worker_member(slots, devices): time.time()})
    # Workers that were killed never say goodbye, and the set would grow for ever.
    redis_client().zremrangebyscore(_workers_key(queue), "-inf", time.time() - FORGOTTEN_S)


def deregister_worker(queue: str, slots: int, devices: tuple[str, ...] = ()) -> None:
    """Record that this worker takes no more jobs."""
    redis_client().zrem(_workers_key(queue), _worker_member(slots, devices))


def live_workers(queue: str = "") -> list[Worker]:
    """Return the workers that serve a queue of this instance, by default the one that judges."""
    since = time.time() - FORGOTTEN_S
    rows: list[Any] = redis_client().zrangebyscore(_workers_key(queue), since, "+inf", withscores=True)
    found = []
    for member, heard in rows:
        host, pid, slots, devices = json.loads(member)
        # Of a worker on this machine it is known at once that it was killed.
        if is_running(pid) if host == socket.gethostname() else heard > time.time() - LIVE_S:
            found.append(Worker(host, pid, slots, tuple(devices)))
    return found


@contextmanager
def at_work(on: str, queue: str = "") -> Iterator[None]:
    """Say what this process of a worker is at, for whoever waits for one."""
    key = redis_key("busy", queue or settings.CELERY_TASK_DEFAULT_QUEUE)
    member = json.dumps([socket.gethostname(), os.getppid(), os.getpid()])
    # What is said is for people only: the work goes on while Redis is away.
    with suppress(RedisError, OSError):
        redis_client().hset(key, member, json.dumps([time.time(), on]))
    try:
        yield
    finally:
        with suppress(RedisError, OSError):
            redis_client().hdel(key, member)


def work_in_progress(queue: str = "") -> list[str]:
    """Return what the processes of live workers are at, the longest first."""
    key = redis_key("busy", queue or settings.CELERY_TASK_DEFAULT_QUEUE)
    rows: dict[Any, Any] = redis_client().hgetall(key)
    alive = {(worker.host, worker.pid) for worker in live_workers(queue)}
    found = []
    for member, value in rows.items():
        host, worker, pid = json.loads(member)
        if (host, worker) in alive and (host != socket.gethostname() or is_running(pid)):
            found.append(tuple(json.loads(value)))
        else:
            redis_client().hdel(key, member)  # killed in the middle of it
    return [on for _, on in sorted(found)]


def describe_wait(queue: str = "") -> str:
    """Say for what a job waits that no worker has taken: "" where a worker is free to take it."""
    slots, works = sum(worker.slots for worker in live_workers(queue)), work_in_progress(queue)
    if not slots:
        return "no worker serves this instance"
    if len(works) < slots:
        return ""
    shown = ", ".join(works[:SHOWN]) + (f" and {len(works) - SHOWN} more" if len(works) > SHOWN else "")
    return f"{shown} before it, on " + ("the only worker" if slots == 1 else f"all {slots} workers")


def has_workers(queue: str = "") -> bool:
    """Return whether a worker serves the queue; none can be asked to while Redis is away."""
    try:
        return not is_away() and bool(live_workers(queue))
    except (RedisError, OSError):
        return False
