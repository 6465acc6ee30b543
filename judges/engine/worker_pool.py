"""Workers of a waiting command, where no other live worker is free."""

import os
import subprocess
import sys
import time
from contextlib import AbstractContextManager

from django.conf import settings

from jobs import workers
from jobs.processes import spawn_child, stop_children
from judges.engine import notifications
from judges.models import Campaign

# A child that says nothing for so long is stopped. Long: a machine that is busy with a model takes minutes to start it.
SILENT_S = 300.0
STARTS = 3
PATIENCE_S = 5.0  # A worker of somebody else may be free in a moment.


def worker_command(processes: int, name: str = "judge") -> list[str]:
    # Fair scheduling hands a message only to a process that is idle: drains last for minutes.
    options = ["--pool", "prefork", "--concurrency", str(processes), "--loglevel", "WARNING", "-Ofair"]
    # One machine's workers need no gossip between them, and each of these costs messages.
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    host = f"{settings.PREFIX}-{name}-{os.getpid()}@%h"
    return [sys.executable, "-m", "celery", "-A", "config", "worker", *options, *quiet, "-n", host]


class CannotStart(Exception):
    """Workers of our own do not come up."""


class WorkerPool(AbstractContextManager["WorkerPool"]):
    """Our own workers: `with WorkerPool(2) as own: own.ensure(campaign)`."""

    def __init__(self, processes: int | None = None) -> None:
        self.processes = processes or os.cpu_count() or 1
        self.children: list[subprocess.Popen[str]] = []
        self.started = 0.0
        self.lost: list[str] = []  # How each worker that did not come up ended.
        self.waiting_since = 0.0  # When it was first found that all workers are busy.
        self.waits = ""  # For what the work waits, for people.

    def __exit__(self, *error: object) -> None:
        stop_children(self.children)

    def ensure(self, campaign: Campaign) -> None:
        """See to it that a worker takes up the campaign. Raises CannotStart."""
        if notifications.is_worked_on(campaign.pk) or campaign.full_name in workers.work_in_progress():
            self.waits, self.waiting_since = "", 0.0
        # Messages of the campaign that were lost are sent again, once somebody serves the queue.
        elif self.serves() and not notifications.is_drained(campaign.pk):
            notifications.notify_workers(campaign.pk)

    def serves(self) -> bool:
        """Whether a worker serves the queue; where none is free, start one. Raises CannotStart."""
        # Of ours one is enough, whatever it is at: more would only share the same machine.
        alive = {worker.pid for worker in workers.live_workers()}
        if any(child.pid in alive for child in self.children):
            self.lost, self.waits = [], workers.describe_wait()
            return True
        self.waits = workers.describe_wait()
        if not self.waits:
            self.waiting_since = 0.0
            return True
        now = time.monotonic()
        self.waiting_since = self.waiting_since or now
        if not alive or now - self.waiting_since >= PATIENCE_S:
            self._start()
            self.waits = "a worker starts" + (f" ({self.waits})" if alive else "")
        return bool(alive)

    def _start(self) -> None:
        """Start a worker, unless one is coming up. CannotStart after three tries."""
        for child in self.children:
            if child.poll() is not None:
                self.lost.append(f"ended with status {child.returncode}")
            elif time.monotonic() - self.started < SILENT_S:
                return
            else:
                stop_children([child])
                self.lost.append(f"was stopped, since it had not begun to work after {SILENT_S:g} s")
        self.children = []
        if len(self.lost) >= STARTS:
            listed = "; ".join(f"one {how}" for how in self.lost)
            raise CannotStart(f"{len(self.lost)} workers did not begin to work: {listed}; look at what they said above")
        self.started = time.monotonic()
        # Its standard output goes nowhere, since the command's own carries one JSON document.
        self.children = [spawn_child(worker_command(self.processes), cwd=settings.BASE_DIR, stdout=subprocess.DEVNULL)]
