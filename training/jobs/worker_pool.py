"""Workers of the queue `gpu`: what they can do, and how a waiting command starts one of its own."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from django.conf import settings

from jobs.notifications import notify
from jobs.processes import spawn_child, stop_children
from jobs.workers import live_workers
from training.jobs import gpus
from training.models import Job

QUEUE = "gpu"
WORK = "training.work"
STARTING_S = 30.0
LOOK_S = 0.5
LINE_EVERY_S = 10.0


def available_devices() -> tuple[str, ...]:
    """Return what jobs may ask for on this machine."""
    return ("cpu", "cuda") if gpus.visible_gpus() else ("cpu",)


def notify_workers() -> None:
    """Tell the queue that a job waits; a lost message costs some seconds, because workers look by themselves."""
    notify(WORK, queue=QUEUE)


def worker_command(processes: int, name: str = "gpu") -> list[str]:
    """Return the command line of a worker that does so many jobs at once: one for each GPU."""
    # One job for each process, and none is fetched in advance: a training takes hours.
    options = ["--pool", "prefork", "--concurrency", str(processes), "--loglevel", "WARNING", "-Ofair", "-Q", QUEUE]
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    host = f"{settings.PREFIX}-{name}-{os.getpid()}@%h"
    return [sys.executable, "-m", "celery", "-A", "config", "worker", *options, *quiet, "-n", host]


def wait_for(jobs: Sequence[Job], describe: Callable[[], str], note: Callable[[str], Any]) -> None:
    """Wait for the end of jobs, with a worker of our own where no other serves the queue; note how far they are."""
    said, line = 0.0, ""
    # The worker ends with this command; what is not over waits for another.
    with OwnWorker() as own:
        while not all(job.is_over for job in jobs):
            if any(job.state == Job.State.QUEUED for job in jobs):
                own.ensure(jobs[0].device)
            time.sleep(LOOK_S)
            for job in jobs:
                job.refresh_from_db()
            now = describe()
            if now != line and (sys.stderr.isatty() or time.monotonic() - said > LINE_EVERY_S):
                said, line = time.monotonic(), now
                note(now)


class OwnWorker:
    """A worker that lives as long as a waiting command, where no other serves the queue."""

    def __init__(self) -> None:
        self.child: subprocess.Popen[str] | None = None
        self.started = 0.0

    def __enter__(self) -> "OwnWorker":
        return self

    def __exit__(self, *_: object) -> None:
        if self.child is not None:
            stop_children([self.child], patience=20)

    def ensure(self, device: str) -> None:
        """Start the worker unless somebody serves the queue who can do a job of this device."""
        if any(device in worker.devices for worker in live_workers(QUEUE)):
            return
        # A worker that was just started takes some seconds until it says that it lives.
        if self.child is not None and self.child.poll() is None and time.monotonic() - self.started < STARTING_S:
            return
        if self.child is not None:
            stop_children([self.child])
        self.started = time.monotonic()
        self.child = spawn_child(worker_command(1, "train"), cwd=settings.BASE_DIR, stdout=subprocess.DEVNULL)
