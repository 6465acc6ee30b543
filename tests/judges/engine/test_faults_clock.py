"""The clock is set back by an hour, in the middle of a campaign, for one process at a time: never the machine's own.

libfaketime does it (`pip install libfaketime`, or QUORUM_FAKETIME with the path of
libfaketime.so.1); without it these rows are not run and say so. A file holds the offset, so the
clock jumps while the process runs.
"""

import importlib.util
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

from embedded.addresses import run_folder
from judges.workers import worker_pool
from tests.fault_rig import Rig, note, rig
from tests.instances import Instance, until

pytestmark = pytest.mark.weekly

PAIRS, BEFORE = 160, 300
BACK = "-3600"
FULL = 350
"""Requests a minute in the row of Redis: all of them are used when its clock jumps, and come back a minute later."""


def library() -> Path:
    """libfaketime.so.1. Skips the test where there is none."""
    if given := os.environ.get("QUORUM_FAKETIME"):
        return Path(given)
    spec = importlib.util.find_spec("libfaketime")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if found := next(Path(folder).rglob("libfaketime.so.1"), None):
            return found
    pytest.skip("not run: libfaketime is not here (pip install libfaketime)")


@contextmanager
def fake(instance: Instance, clock: Path, only: str) -> Iterator[None]:
    """Whoever is started meanwhile takes its time from `clock`, if its program has this name."""
    before = instance.environment.copy()
    instance.environment |= {
        "LD_PRELOAD": str(library()),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_ONLY_CMDS": only,
        "FAKETIME_CACHE_DURATION": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }
    yield
    instance.environment.clear()
    instance.environment |= before


def set_back(clock: Path) -> tuple[float, float]:
    """The jump; (just before, when every process has noticed)."""
    began = time.time()
    clock.write_text(BACK)
    time.sleep(1.5)
    return began, began + 0.2


def check(site: Rig, clock: Path, who: str, pairs: int = PAIRS, calls: int = BEFORE) -> None:
    """A campaign during which the clock jumps, and one that begins after it."""
    site.begin(f"clock-{who}", pairs, calls=calls)
    outcome = site.outcome(f"clock-{who}", *set_back(clock))
    note(f"clock back, {who}", outcome)
    assert outcome.holds, outcome
    site.begin(f"after-{who}", 40, calls=1)
    later = site.outcome(f"after-{who}", *2 * (time.time(),))
    assert later.holds, later


def hour_back(now: float) -> bool:
    """Whether a clock that said the time before says an hour less."""
    return abs(now + 3600 - time.time()) < 10


@pytest.fixture
def clock(tmp_path: Path) -> Path:
    """The file with the offset, which is none yet."""
    file = tmp_path / "clock"
    file.write_text("+0")
    return file


@pytest.fixture
def migrated(tmp_path: Path) -> Instance:
    return Instance(tmp_path / "var").migrated()


def test_postgresql_with_a_clock_that_jumps_back_loses_doubles_and_pays_nothing(migrated, clock, tmp_path):
    with fake(migrated, clock, "postgres"):
        migrated.hold()
    with rig(migrated, tmp_path) as site:
        check(site, clock, "postgres")
        assert hour_back(site.ask("SELECT extract(epoch FROM now())::bigint"))


def test_redis_with_a_clock_that_jumps_back_loses_doubles_and_pays_nothing(migrated, clock, tmp_path):
    """The account's window is full at the jump: without care it would stay so for an hour."""
    with fake(migrated, clock, "redis-server"):
        migrated.hold()
    client = redis.Redis(unix_socket_path=str(run_folder(migrated.var) / "redis.sock"))
    with client, rig(migrated, tmp_path, more=f"requests_per_minute = {FULL}") as site:
        check(site, clock, "redis", pairs=70, calls=FULL)
        assert hour_back(client.time()[0])


def test_a_worker_whose_clock_jumps_back_loses_doubles_and_pays_nothing(migrated, clock, tmp_path):
    with rig(migrated, tmp_path, processes=0) as site:
        migrated.hold()
        with fake(migrated, clock, "python"):
            worker = migrated.start(*worker_pool.worker_command(2, "clock")[1:])
            assert "python" in Path(f"/proc/{worker.pid}/comm").read_text()
        until(lambda: len(site.workers().get(worker.pid, [])) == 2, "the worker")
        check(site, clock, "worker")
