"""Workers of the queue `gpu`: their devices, their command line, and the worker that a waiting command starts."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
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
NEEDED = ("torch", "peft", "accelerate")  # Packages of the training extra; pages and commands do not import them.


def is_training_installed() -> bool:
    """Return whether the training extra is installed here."""
    return all(find_spec(name) for name in NEEDED)


def available_devices() -> tuple[str, ...]:
    """Return the devices that this machine has for jobs."""
    return ("cpu", "cuda") if gpus.visible_gpus() else ("cpu",)


def notify_workers() -> None:
    """Notify the queue of a waiting job; if the message is lost, workers find the job some seconds later."""
    notify(WORK, queue=QUEUE)


def worker_command(processes: int, name: str = "gpu") -> list[str]:
    """Return the command line of a worker with this many processes, each of which works on one job at a time."""
    # -Ofair: no job is assigned to a busy process, since a training takes hours.
    options = ["--pool", "prefork", "--concurrency", str(processes), "--loglevel", "WARNING", "-Ofair", "-Q", QUEUE]
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    host = f"{settings.PREFIX}-{name}-{os.getpid()}@%h"
    return [sys.executable, "-m", "celery", "-A", "config", "worker", *options, *quiet, "-n", host]


def wait_for(jobs: Sequence[Job], describe: Callable[[], str], note: Callable[[str], Any]) -> None:
    """Wait until jobs are over, with a temporary worker if no other serves the queue, and report their progress.

    `describe` returns the progress as a line, `note` prints it.
    """
    reported_at, reported_line = 0.0, ""
    # The worker stops with this command; jobs that are not over then wait for another worker.
    with OwnWorker() as own_worker:
        while not all(job.is_over for job in jobs):
            if any(job.state == Job.State.QUEUED for job in jobs):
                own_worker.ensure(jobs[0].device)
            time.sleep(LOOK_S)
            for job in jobs:
                job.refresh_from_db()
            line = describe()
            is_due = sys.stderr.isatty() or time.monotonic() - reported_at > LINE_EVERY_S
            if line != reported_line and is_due:
                reported_at, reported_line = time.monotonic(), line
                note(line)


class OwnWorker:
    """A temporary worker of a waiting command, started only if no other serves the queue."""

    def __init__(self) -> None:
        self.child: subprocess.Popen[str] | None = None
        self.started_at = 0.0

    def __enter__(self) -> "OwnWorker":
        return self

    def __exit__(self, *_: object) -> None:
        if self.child is not None:
            stop_children([self.child], patience=20)

    def ensure(self, device: str) -> None:
        """Start the worker unless the queue has one with this device."""
        if any(device in worker.devices for worker in live_workers(QUEUE)):
            return
        # A worker needs some seconds after its start until it is registered.
        if self.child is not None and self.child.poll() is None and time.monotonic() - self.started_at < STARTING_S:
            return
        if self.child is not None:
            stop_children([self.child])
        self.started_at = time.monotonic()
        self.child = spawn_child(worker_command(1, "train"), cwd=settings.BASE_DIR, stdout=subprocess.DEVNULL)
