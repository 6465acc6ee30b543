"""Parts of the engine's figures: a panel on a local model server, workers, campaigns, and CPU times of processes."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings

from corpus.models import Collection
from jobs.processes import spawn_child
from jobs.workers import live_workers
from judges.campaigns import configurations, lifecycle
from judges.models import Campaign
from judges.workers import worker_pool
from tests import engine_parts as parts
from tests.instances import until
from tests.modelserver.fixtures import KEY, KEY_ENV, LocalModels, start

LATENCY_S = 0.2
TICK = os.sysconf("SC_CLK_TCK")


@contextmanager
def model_server() -> Iterator[tuple[LocalModels, int]]:
    """Start a server that answers yes after 0.2 s, and yield it with its process id."""
    os.environ[KEY_ENV] = KEY
    with tempfile.TemporaryDirectory() as folder:
        process, models = start(Path(folder) / "requests.jsonl", "--latency", str(LATENCY_S))
        try:
            yield models, process.pid
        finally:
            process.terminate()
            process.wait(10)


@contextmanager
def workers(processes: int, **environment: str) -> Iterator["subprocess.Popen[str]"]:
    """Start a worker of this instance's queue in a separate process group, and kill it at the end."""
    child = spawn_child(
        worker_pool.worker_command(processes, "bench"),
        {**os.environ, "QUORUM_LEASE_S": "3", **environment},
        cwd=settings.BASE_DIR,
        stdout=subprocess.DEVNULL,
    )
    try:
        until(lambda: bool(live_workers()))
        yield child
    finally:
        kill(child)


def kill(child: "subprocess.Popen[str]") -> None:
    """Send SIGKILL to the worker and all its processes."""
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def panel(models: LocalModels) -> None:
    """Create a panel of two debaters and five voters with different model names, all of which answer yes."""
    parts.make_panel(models, debate=("yes+a", "yes+b"), votes=tuple(f"yes+v{number}" for number in range(1, 6)))


def begin(collection: Collection, policy: str, debaters: Sequence[str] = ()) -> Campaign:
    """Start the campaign, or resume it."""
    configuration = configurations.build_configuration(policy=policy, debaters=debaters)
    started = lifecycle.start_campaign(collection=collection, configuration=configuration)
    assert started.campaign is not None
    return started.campaign


def wait_until_finished(campaign: Campaign, seconds: float) -> None:
    """Wait until the campaign is finished."""
    until(lambda: Campaign.objects.get(pk=campaign.pk).state == Campaign.State.FINISHED, seconds=seconds)


def rate(requests: list[dict[str, Any]]) -> float:
    """Return the calls per second between the first and the last call in the server's log."""
    arrived = [request["arrived"] for request in requests]
    return float((len(arrived) - 1) / (max(arrived) - min(arrived)))


def cpu_seconds(is_counted: Callable[[int, str], bool]) -> float:
    """Return the user and system time of the processes for which `is_counted(process group, command name)` is true."""
    total = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text().partition("(")[2].rpartition(") ")
        except OSError:
            continue
        fields = rest.split()
        if is_counted(int(fields[2]), name):
            total += int(fields[11]) + int(fields[12])
    return total / TICK
