"""Workers of the queue `gpu`: who lives, what they can do, and how a waiting command starts one of its own."""

import json
import logging
import os
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import kombu.exceptions
from celery import Celery
from django.conf import settings
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from jobs.processes import lives, spawn, stop

QUEUE = "gpu"
WORK = "training.work"
LIVE_S = 10.0
STARTING_S = 30.0
logger = logging.getLogger(__name__)
DRIVER = Path("/proc/driver/nvidia/version")


@dataclass(frozen=True, slots=True)
class Worker:
    """A live worker: where, and which devices its jobs may ask for."""

    host: str
    pid: int
    devices: tuple[str, ...]


@cache
def redis() -> Redis:
    """The connection pool of this process. That Redis is away is known at once: pages go on without it."""
    return Redis.from_url(
        settings.REDIS_URL, socket_connect_timeout=1.0, socket_timeout=1.0, retry=Retry(NoBackoff(), 1)
    )


def _key() -> str:
    return f"{settings.PREFIX}:gpu-workers"


@cache
def devices() -> tuple[str, ...]:
    """What jobs may ask for on this machine; torch is asked in a process of its own, where there is a driver."""
    if not DRIVER.exists():
        return ("cpu",)
    asked = "import sys, torch; sys.exit(not torch.cuda.is_available())"
    found = subprocess.run([sys.executable, "-c", asked], check=False, capture_output=True).returncode == 0
    return ("cpu", "cuda") if found else ("cpu",)


def _member() -> str:
    return json.dumps([socket.gethostname(), os.getpid(), list(devices())])


def say_alive() -> None:
    """This process is a worker and lives."""
    redis().zadd(_key(), {_member(): time.time()})
    redis().zremrangebyscore(_key(), "-inf", time.time() - 60)


def say_gone() -> None:
    """This worker takes no more jobs."""
    redis().zrem(_key(), _member())


def live_workers() -> list[Worker]:
    """Workers that serve the queue."""
    members: list[Any] = redis().zrangebyscore(_key(), time.time() - LIVE_S, "+inf")
    found = [Worker(host, pid, tuple(can)) for host, pid, can in map(json.loads, members)]
    return [one for one in found if one.host != socket.gethostname() or lives(one.pid)]


def has_workers() -> bool:
    """Somebody serves the queue, as far as is known: nobody is while Redis is away."""
    try:
        return bool(live_workers())
    except (RedisError, OSError):
        return False


@cache
def messenger() -> Celery:
    """Sends messages by their task's name."""
    app = Celery("quorum", set_as_current=False)
    app.config_from_object("django.conf:settings", namespace="CELERY")
    return app


def wake() -> None:
    """Tell the queue that a job waits; a lost message costs some seconds, because workers look by themselves."""
    try:
        redis().ping()
        messenger().send_task(WORK, queue=QUEUE, ignore_result=True)
    except (kombu.exceptions.OperationalError, RedisError, OSError) as error:
        logger.warning("Redis is away, nobody was told of a job: %s", error)


def nobody_is_told() -> bool:
    """No message waits in the queue, so another one would not pile up."""
    return not redis().llen(f"{settings.PREFIX}:{QUEUE}")


def worker_command(processes: int, name: str = "gpu") -> list[str]:
    """The command line of a worker that does so many jobs at once: one for each GPU."""
    options = ["--pool", "prefork", "--concurrency", str(processes), "--loglevel", "WARNING", "-Ofair", "-Q", QUEUE]
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    host = f"{settings.PREFIX}-{name}-{os.getpid()}@%h"
    return [sys.executable, "-m", "celery", "-A", "config", "worker", *options, *quiet, "-n", host]


class Own:
    """`with Own() as own: own.ensure()`: a worker of a waiting command, where no other serves the queue."""

    def __init__(self) -> None:
        self.child: subprocess.Popen[str] | None = None
        self.started = 0.0

    def __enter__(self) -> "Own":
        return self

    def __exit__(self, *_: object) -> None:
        if self.child is not None:
            stop([self.child], patience=20)

    def ensure(self, device: str) -> None:
        """Somebody serves the queue who can do a job of this device."""
        if any(device in worker.devices for worker in live_workers()):
            return
        if self.child is not None and self.child.poll() is None and time.monotonic() - self.started < STARTING_S:
            return
        if self.child is not None:
            stop([self.child])
        self.started = time.monotonic()
        self.child = spawn(worker_command(1, "train"), cwd=settings.BASE_DIR, stdout=subprocess.DEVNULL)
