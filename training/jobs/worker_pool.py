"""Workers of the queue `gpu`: what they can do, and how a waiting command starts one of its own."""

import os
import subprocess
import sys
import time

from django.conf import settings

from jobs.notifications import notify
from jobs.processes import spawn_child, stop_children
from jobs.workers import live_workers
from training.jobs import gpus

QUEUE = "gpu"
WORK = "training.work"
STARTING_S = 30.0


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
