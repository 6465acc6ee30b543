"""A judge worker of a test's own, which is killed in the middle of its calls."""

import os
import signal
import subprocess
import time

from config.env import ROOT
from jobs.processes import spawn_child
from judges.workers import worker_pool
from tests.engine_parts import FAST


def own_worker(instance: dict[str, str], *, processes: int = 2, calls: int = 4) -> "subprocess.Popen[bytes]":
    """With so many calls in flight in each process."""
    environment = {**instance, **FAST, "QUORUM_CALLS_IN_FLIGHT": str(calls)}
    return spawn_child(
        worker_pool.worker_command(processes, "killed"), environment, cwd=ROOT, stderr=subprocess.DEVNULL
    )


def kill(own: "subprocess.Popen[bytes]") -> tuple[float, float]:
    """(Just before, when also what was on its way has arrived)."""
    killed = time.time()
    os.killpg(own.pid, signal.SIGKILL)
    own.wait()
    time.sleep(1.0)
    return killed, time.time()
