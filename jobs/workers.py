"""Live workers of each queue, who say so in Redis every two seconds."""

import json
import os
import socket
import time
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from redis.exceptions import RedisError

from jobs.notifications import is_away, redis_client, redis_key
from jobs.processes import is_running

LIVE_S = 10.0  # A worker that has not been heard of for so long is gone.


@dataclass(frozen=True, slots=True)
class Worker:
    """A live worker: its process, how many jobs it does at once, and which devices they may ask for."""

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
    redis_client().zremrangebyscore(_workers_key(queue), "-inf", time.time() - 60)


def deregister_worker(queue: str, slots: int, devices: tuple[str, ...] = ()) -> None:
    """Record that this worker takes no more jobs."""
    redis_client().zrem(_workers_key(queue), _worker_member(slots, devices))


def live_workers(queue: str = "") -> list[Worker]:
    """Return the workers that serve a queue of this instance, by default the one that judges."""
    members: list[Any] = redis_client().zrangebyscore(_workers_key(queue), time.time() - LIVE_S, "+inf")
    found = [Worker(host, pid, slots, tuple(devices)) for host, pid, slots, devices in map(json.loads, members)]
    # Of a worker on this machine it is known at once that it was killed.
    return [worker for worker in found if worker.host != socket.gethostname() or is_running(worker.pid)]


def has_workers(queue: str = "") -> bool:
    """Return whether a worker serves the queue; none can be asked to while Redis is away."""
    try:
        return not is_away() and bool(live_workers(queue))
    except (RedisError, OSError):
        return False
