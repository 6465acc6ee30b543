"""Processes are killed, or stand still for 20 s, in the middle of a campaign (docs/operators.md, issue check 2).

Each row hits one campaign of a served instance of its own. The lease is shorter than the
standstill, so that pairs are taken over. With QUORUM_FAULTS_OUT what was seen is appended there,
one JSON line a row.
"""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator

import pytest

from tests.fault_rig import LEASE_S, Outcome, Rig, family, kill, note, rig, stop_for
from tests.instances import PATIENCE, Instance, until
from tests.stages import first_slow

PAIRS, BEFORE = 160, 300
"""More pairs than one process claims at once (64), so that both have work when the fault comes."""
STANDSTILL_S = 20.0
Fault = Callable[[Rig], tuple[float, float]]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    folder = tmp_path_factory.mktemp("faults")
    with rig(Instance(folder / "var"), folder) as made:
        yield made


def hit(site: Rig, row: str, fault: Fault, pairs: int = PAIRS, calls: int = BEFORE) -> Outcome:
    """Start a campaign, hit it, wait for its end."""
    name = row.replace(" ", "-")
    site.begin(name, pairs, calls=calls)
    killed, dead = fault(site)
    outcome = site.outcome(name, killed, dead)
    note(row, outcome)
    return outcome


def hit_by(site: Rig, who: str) -> list[int]:
    if who == "one worker":
        return next(children for children in site.workers().values() if children)[:1]
    if who == "all workers":
        return [pid for main, children in site.workers().items() for pid in (main, *children)]
    return [site.service(who)]


KILLED = ("one worker", "all workers", "postgres", "redis", "keeper")


@pytest.mark.parametrize("who", first_slow(KILLED, 2))
def test_sigkill_loses_doubles_and_pays_nothing(site: Rig, who: str) -> None:
    def fault(site: Rig) -> tuple[float, float]:
        killed, dead = kill(*hit_by(site, who))
        time.sleep(0.2)
        return killed, max(dead, killed + 0.2)

    outcome = hit(site, f"kill {who}", fault)
    assert outcome.holds, outcome


@pytest.mark.weekly
@pytest.mark.parametrize("who", KILLED)
def test_a_standstill_of_twenty_seconds_loses_doubles_and_pays_nothing(site: Rig, who: str) -> None:
    def fault(site: Rig) -> tuple[float, float]:
        pids = family(site.service(who)) if who == "postgres" else hit_by(site, who)
        stopped, going = stop_for(STANDSTILL_S, *pids)
        return stopped, going if who == "postgres" else stopped + 0.2  # nothing is committed without PostgreSQL

    outcome = hit(site, f"stop {who}", fault)
    assert outcome.holds, outcome


@pytest.mark.slow
def test_postgresql_away_for_longer_than_a_lease_makes_nobody_pay_twice(site: Rig) -> None:
    """Answers wait in a worker's memory meanwhile, and its leases run out before they can be stored.

    The other worker has no pair: it looks for expired leases all the time, and may be the first to reconnect.
    """

    def fault(site: Rig) -> tuple[float, float]:
        keeper = site.service("keeper")
        os.kill(keeper, signal.SIGSTOP)  # it would start PostgreSQL again at once
        try:
            killed, _ = kill(site.service("postgres"))
            time.sleep(LEASE_S + 5)
        finally:
            os.kill(keeper, signal.SIGCONT)
        return killed, killed + 0.2

    outcome = hit(site, "postgres away for 11 s", fault, pairs=60, calls=100)
    assert outcome.holds, outcome
    assert outcome.repeated == 0, "an answer that waited is not asked for again"


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """Nobody serves: `judge --wait` starts its own workers."""
    folder = tmp_path_factory.mktemp("bare")
    with rig(Instance(folder / "var"), folder, processes=0) as made:
        yield made


@pytest.mark.weekly
@pytest.mark.parametrize("who", KILLED[1:])
def test_judge_wait_outlives_what_is_killed_under_it(bare: Rig, who: str) -> None:
    """It waits, starts workers anew, and ends with 0; nobody has to repeat the command."""
    name = f"wait-{who.replace(' ', '-')}"
    bare.import_pairs(name, PAIRS)
    bare.models.offset = bare.models.log.stat().st_size
    waiting = bare.instance.start("manage.py", "judge", name, "--wait", "--json", "--workers", "2")
    until(lambda: len(bare.models.requests()) >= BEFORE, f"{BEFORE} calls")
    killed, dead = kill(*hit_by(bare, who))
    out, err = waiting.communicate(timeout=PATIENCE)
    assert waiting.returncode == 0, err
    outcome = bare.outcome(name, killed, max(dead, killed + 0.2))
    note(f"kill {who} under judge --wait", outcome)
    assert outcome.holds, outcome
    assert json.loads(out)["labelled"] == PAIRS
