"""Web nodes and judge workers are restarted in turn under 20 annotators and a campaign (issue 17, check 6)."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from judges.workers.worker_pool import worker_command
from tests.annotators import at_work, count_judged, count_stored, make_people
from tests.fault_rig import CALLS, ENVIRONMENT, Rig, rig
from tests.instances import PATIENCE, ROOT, Instance, until
from tests.plugin_browser import free_port
from tests.round_robin import RoundRobin, round_robin

pytestmark = pytest.mark.weekly

PEOPLE, PAIRS = 20, 600
# So slowly, with calls of a second, that the campaign outlasts all restarts; then the calls get quick.
FEW_CALLS = {"QUORUM_CALLS_IN_FLIGHT": "3"}
STOP_DELAY = {"QUORUM_STOP_DELAY_S": "5"}
SECRET_KEY = {"SECRET_KEY": "s" * 50}


class Machines:
    """Machines of an instance whose PostgreSQL, Redis and store are elsewhere; each has a VAR of its own."""

    def __init__(self, services: Instance, folder: Path) -> None:
        announced = services.announced()
        shared = {"DATABASE_URL": announced["database"], "REDIS_URL": announced["redis"], **SECRET_KEY}
        shared["QUORUM_STORE"] = f"file://{folder}/store"
        self.environment = {**ENVIRONMENT, **shared, **STOP_DELAY, **FEW_CALLS}
        self.folder = folder
        self.redis = redis.Redis.from_url(announced["redis"])
        self.machines: dict[str, Instance] = {}
        self.running: dict[str, subprocess.Popen[str]] = {}

    def run(self, name: str, *args: str) -> subprocess.Popen[str]:
        """Start a process on the machine of this name."""
        machine = self.machines.setdefault(name, Instance(self.folder / name, **self.environment))
        # What it says goes to a file: a pipe that nobody reads is full at some time, and then it stands still.
        with (self.folder / f"{name}.log").open("a") as log:
            child = subprocess.Popen(
                [sys.executable, *args], cwd=ROOT, env=machine.environment, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, text=True, start_new_session=True,
            )  # fmt: skip
        machine.started.append(child)
        self.running[name] = child
        return child

    def serve(self, port: int, proxy: RoundRobin) -> None:
        """A web node at this port, until the proxy sends people there."""
        self.run(f"web-{port}", "manage.py", "serve", "--port", str(port), "--judge-workers", "0")
        until(lambda: port in proxy.ready, f"the node at {port}")

    def judge(self, name: str) -> None:
        """A judge worker, until it says that it lives."""
        child = self.run(name, *worker_command(2, name)[1:])
        until(lambda: self.lives(child.pid), name)

    def lives(self, pid: int) -> bool:
        said = self.redis.zrangebyscore("quorum:workers:judge", time.time() - 5, "+inf")
        return any(f" {pid}," in one.decode() for one in said)

    def stop(self, name: str) -> None:
        child = self.running.pop(name)
        child.terminate()
        assert child.wait(PATIENCE) == 0, (self.folder / f"{name}.log").read_text()

    def close(self) -> None:
        for machine in self.machines.values():
            machine.end()
        self.redis.close()


@pytest.fixture
def campaign(tmp_path: Path) -> Iterator[Rig]:
    """The services, the server of models, and who starts a campaign there."""
    with rig(Instance(tmp_path / "services", **SECRET_KEY), tmp_path, processes=0, latency=1.0) as made:
        made.instance.hold()
        yield made


@pytest.fixture
def machines(campaign: Rig, tmp_path: Path) -> Iterator[Machines]:
    made = Machines(campaign.instance, tmp_path)
    yield made
    made.close()


def test_web_nodes_and_workers_are_restarted_twice_and_nobody_notices(campaign: Rig, machines: Machines) -> None:
    ports, workers = [free_port(), free_port()], ["judge-1", "judge-2"]
    with round_robin(ports) as proxy:
        for port in ports:
            machines.serve(port, proxy)
        for name in workers:
            machines.judge(name)
        people = make_people(campaign.instance, proxy.address, PEOPLE, pause=(0.3, 1.0))
        with at_work(people):
            campaign.begin("rolling", PAIRS, calls=CALLS)
            until(lambda: all(person.judged for person in people), "a judgment of everybody")
            for _ in range(2):
                for port, name in zip(ports, workers, strict=True):
                    before = count_judged(people)
                    machines.stop(f"web-{port}")
                    machines.serve(port, proxy)
                    machines.stop(name)
                    machines.judge(name)
                    assert count_judged(people) > before
            assert not campaign.ended("rolling"), "there were calls all the time"
            campaign.models.script({"*": {"verdict": "yes", "latency": 0.02}})
    statuses = {status for person in people for status in person.statuses}
    rows, tasks = count_stored(campaign.instance)
    slowest = max(person.slowest for person in people)
    now = time.time()
    outcome = campaign.outcome("rolling", now, now)
    print(f"{count_judged(people)} judged, {rows} stored, {statuses}, slowest {slowest:.1f} s; {outcome}")
    assert statuses == {200} and proxy.failures == []
    assert count_judged(people) == rows == tasks
    assert outcome.holds and outcome.repeated == 0, outcome


def test_a_node_that_is_told_to_end_says_so_and_serves_on(make_instance: Callable[..., Instance]) -> None:
    port = free_port()
    instance = make_instance(QUORUM_STOP_DELAY_S="15", QUORUM_WEB_PROCESSES="1").migrated()
    with round_robin([port]) as proxy:
        site = instance.start("manage.py", "serve", "--port", str(port), "--judge-workers", "0")
        until(lambda: port in proxy.ready, "the node")
        (person,) = make_people(instance, f"http://127.0.0.1:{port}", 1)
        site.terminate()
        until(lambda: port not in proxy.ready, "the node's word", seconds=10)
        assert person.ask("next/")[0] == 200
        assert site.wait(PATIENCE) == 0
    assert person.ask("next/")[0] == 0
