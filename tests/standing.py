"""One worker for all tests that only need some worker: starting one takes as long as twenty such tests."""

import subprocess

from config.env import ROOT
from jobs.processes import spawn_child, stop_children

STANDING = "_standing_worker"
"""The fixture that asks for it, in tests.engine_parts."""
_running: list["subprocess.Popen[str]"] = []


def standing_worker(environment: dict[str, str]) -> "subprocess.Popen[str]":
    """The worker with two processes that stands already, or a new one."""
    from judges.workers import worker_pool

    if not _running or _running[0].poll() is not None:
        end_standing_worker()
        command = worker_pool.worker_command(2, "tests")
        _running.append(spawn_child(command, environment, cwd=ROOT, stderr=subprocess.DEVNULL))
    return _running[0]


def end_standing_worker() -> None:
    """Wait for its end, if one stands."""
    stop_children(_running)
    _running.clear()
