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

# A silent child is stopped after this time. A machine that is busy with a model takes minutes to start it.
SILENT_S = 300.0
STARTS = 3
PATIENCE_S = 5.0  # Another process's worker may be free in a moment.


def worker_command(processes: int, name: str = "judge") -> list[str]:
    # Fair scheduling gives a message only to an idle process: a time slice lasts for minutes.
    options = ["--pool", "prefork", "--concurrency", str(processes), "--loglevel", "WARNING", "-Ofair"]
    # Workers on one machine need neither gossip nor heartbeats, which cost messages.
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    host = f"{settings.PREFIX}-{name}-{os.getpid()}@%h"
    return [sys.executable, "-m", "celery", "-A", "config", "worker", *options, *quiet, "-n", host]


class CannotStart(Exception):
    """The command's own workers do not start."""


class WorkerPool(AbstractContextManager["WorkerPool"]):
    """Workers of a command: `with WorkerPool(2) as pool: pool.ensure(campaign)`."""

    def __init__(self, processes: int | None = None) -> None:
        self.processes = processes or os.cpu_count() or 1
        self.children: list[subprocess.Popen[str]] = []
        self.started_at = 0.0
        self.lost: list[str] = []  # For each worker that did not start, how it ended.
        self.waiting_since = 0.0  # When all workers were first seen to be busy.
        self.waits = ""  # What the work waits for, for people.

    def __exit__(self, *error: object) -> None:
        stop_children(self.children)

    def ensure(self, campaign: Campaign) -> None:
        """Make sure that a worker takes up the campaign. Raises CannotStart."""
        if notifications.is_worked_on(campaign.pk) or campaign.full_name in workers.work_in_progress():
            self.waits, self.waiting_since = "", 0.0
        # The campaign's messages may be lost: they are sent again once a worker serves the queue.
        elif self.serves() and not notifications.is_drained(campaign.pk):
            notifications.notify_workers(campaign.pk)

    def serves(self) -> bool:
        """Return whether a worker serves the queue; if none is free, start one. Raises CannotStart."""
        # One worker of our own is enough, even if it is busy: more would only share the same machine.
        live_pids = {worker.pid for worker in workers.live_workers()}
        if any(child.pid in live_pids for child in self.children):
            self.lost, self.waits = [], workers.describe_wait()
            return True
        self.waits = workers.describe_wait()
        if not self.waits:
            self.waiting_since = 0.0
            return True
        now = time.monotonic()
        self.waiting_since = self.waiting_since or now
        if not live_pids or now - self.waiting_since >= PATIENCE_S:
            self._start()
            self.waits = "a worker starts" + (f" ({self.waits})" if live_pids else "")
        return bool(live_pids)

    def _start(self) -> None:
        """Start a worker, unless one is starting. Raises CannotStart after three tries."""
        for child in self.children:
            if child.poll() is not None:
                self.lost.append(f"ended with status {child.returncode}")
            elif time.monotonic() - self.started_at < SILENT_S:
                return
            else:
                stop_children([child])
                self.lost.append(f"was stopped, since it had not begun to work after {SILENT_S:g} s")
        self.children = []
        if len(self.lost) >= STARTS:
            endings = "; ".join(f"one {ending}" for ending in self.lost)
            raise CannotStart(f"{len(self.lost)} workers did not start: {endings}. See their output above.")
        self.started_at = time.monotonic()
        # Its standard output is discarded, since the command's own is one JSON document.
        self.children = [spawn_child(worker_command(self.processes), cwd=settings.BASE_DIR, stdout=subprocess.DEVNULL)]
