"""Workers of a waiting command: started when no other live worker of this instance serves the queue."""

import os
import subprocess
import sys
import time
from contextlib import AbstractContextManager

from django.conf import settings

from jobs import workers
from jobs.processes import spawn_child, stop_children
from judges.engine import notifications

STARTING_S = 20.0
STARTS = 3


def worker_command(processes: int, name: str = "judge") -> list[str]:
    """Return the command line of a worker with so many processes."""
    # Fair scheduling hands a message only to a process that is idle: drains last for minutes.
    options = ["--pool", "prefork", "--concurrency", str(processes), "--loglevel", "WARNING", "-Ofair"]
    # One machine's workers need no gossip between them, and each of these costs messages.
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    host = f"{settings.PREFIX}-{name}-{os.getpid()}@%h"
    return [sys.executable, "-m", "celery", "-A", "config", "worker", *options, *quiet, "-n", host]


class CannotStart(Exception):
    """Workers of our own do not come up."""


class WorkerPool(AbstractContextManager["WorkerPool"]):
    """Workers of our own: `with WorkerPool(2) as own: own.ensure(campaign)`. On leaving they are stopped."""

    def __init__(self, processes: int | None = None) -> None:
        self.processes = processes or os.cpu_count() or 1
        self.children: list[subprocess.Popen[str]] = []
        self.started = 0.0
        self.starts = 0

    def __exit__(self, *error: object) -> None:
        stop_children(self.children)

    def ensure(self, campaign: int) -> None:
        """Send messages of the campaign that were lost again, once somebody serves the queue. Raises CannotStart."""
        if self.serves() and not notifications.is_drained(campaign):
            notifications.notify_workers(campaign)

    def serves(self) -> bool:
        """Return whether a worker serves the queue, and start one if not. Raises CannotStart after three vain tries."""
        if workers.live_workers():
            self.starts = 0
            return True
        # Children that ended are forgotten; the others may only be slow to answer.
        self.children = [child for child in self.children if child.poll() is None]
        if self.children and time.monotonic() - self.started < STARTING_S:
            return False
        stop_children(self.children)
        if self.starts == STARTS:
            raise CannotStart(f"{STARTS} workers ended before they could work; look at what they said above")
        self.starts += 1
        self.started = time.monotonic()
        # Its standard output goes nowhere, since the command's own carries one JSON document.
        self.children = [spawn_child(worker_command(self.processes), cwd=settings.BASE_DIR, stdout=subprocess.DEVNULL)]
        return False
