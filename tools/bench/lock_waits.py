"""lock_waits: how long storing a call waits for rows locked by other worker processes, and how many rows it updates.

One worker process and then ten run a campaign with a budget, in a collection with budgets. The waiting time is the mean
number of backends that wait for a lock, sampled in pg_stat_activity some hundred times a second, times the seconds of
the run. QUORUM_BENCH_LOCKS sets another number of pairs for each process.
"""

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection

from corpus.collections.configure import configure_collection
from judges.campaigns import configurations, lifecycle
from judges.models import Attempt, Campaign, JudgeVersion, Panel
from store.sql import database_parameters
from tests import engine_parts as parts
from tools.bench.simulated_workers import LATENCY_S, PAIRS_IN_FLIGHT

PAIRS = int(os.environ.get("QUORUM_BENCH_LOCKS", 300))
PROCESSES = 10
LOOK_S = 0.004
WAITING = """
SELECT wait_event, count(*) FROM pg_stat_activity
WHERE wait_event_type = 'Lock' AND datname = current_database() GROUP BY 1
"""
UPDATED = """
SELECT relname, pg_stat_get_tuples_updated(oid) FROM pg_class
WHERE relkind = 'r' AND relname ~ '^(judges|corpus)_' AND pg_stat_get_tuples_updated(oid) > 0
"""
RATE = """
SELECT count(*), extract(epoch FROM max(started_at) - min(started_at))::float8
FROM judges_attempt WHERE campaign_id = %s
"""


@dataclass
class LockWaits:
    """Backends that wait for a lock, sampled by a thread with a separate connection."""

    looks: int = 0
    found: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def __enter__(self) -> "LockWaits":
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._look, daemon=True)
        self.began = time.monotonic()
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self.thread.join()
        self.seconds = time.monotonic() - self.began

    def _look(self) -> None:
        with psycopg.connect(**database_parameters(), autocommit=True) as raw:
            while not self.done.wait(LOOK_S):
                self.looks += 1
                for event, count in raw.execute(WAITING):
                    self.found[event] += count

    def milliseconds(self) -> dict[str, float]:
        """Return the waiting time in the whole run by kind of lock."""
        return {event: 1000 * self.seconds * count / self.looks for event, count in self.found.most_common()}


@dataclass(frozen=True)
class Drained:
    """A finished campaign: its calls and their rate, the waiting time by kind of lock, the updated rows by table."""

    processes: int
    calls: int
    rate: float
    waited: dict[str, float]
    updated: Counter[str]

    @property
    def wait_ms(self) -> float:
        """The waiting time of a call for all kinds of locks."""
        return sum(self.waited.values()) / self.calls


def make_panel() -> Panel:
    """Create a panel of two debaters with prices; nothing listens at their address."""
    for name in ("pro", "contra"):
        JudgeVersion.objects.create(
            name=name,
            model=name,
            provider="openai-compatible",
            base_url="http://127.0.0.1:9/v1",
            input_price=1.0,
            output_price=2.0,
        )
    Panel.objects.update(is_default=False)
    return Panel.objects.create(name="simulated", debate=["pro", "contra"], is_default=True)


def begin(pairs: int, name: str) -> Campaign:
    """Start a campaign with debates of one round for this many pairs, with budgets that are never reached."""
    collection = parts.collection_of(pairs, name)
    configure_collection(collection, {"budget": 1000.0, "daily_budget": 1000.0})
    configuration = configurations.build_configuration(policy="debate")
    started = lifecycle.start_campaign(collection=collection, configuration=configuration, budget=1000.0)
    assert started.campaign is not None
    return started.campaign


def updates() -> Counter[str]:
    """Return the number of updated rows so far, by table."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(UPDATED)
        return Counter(dict(cursor.fetchall()))


def drain(processes: int, pairs: int, environment: dict[str, str] | None = None) -> Drained:
    """Run a campaign with this many processes and pairs for each of them."""
    campaign = begin(pairs * processes, f"locks-{processes}")
    before = updates()
    command = [sys.executable, "-m", "tools.bench.simulated_workers", str(campaign.pk), str(processes)]
    with LockWaits() as lock_waits:
        subprocess.run(command, cwd=settings.BASE_DIR, env=environment, check=True)
    with connection.cursor() as cursor:
        cursor.execute(RATE, [campaign.pk])
        calls, seconds = cursor.fetchone()
    campaign.refresh_from_db()
    assert campaign.state == Campaign.State.FINISHED and calls == 2 * pairs * processes
    assert not Attempt.objects.filter(campaign=campaign).exclude(outcome="labelled").exists()
    changed = updates()
    changed.subtract(before)
    return Drained(processes, calls, calls / seconds, lock_waits.milliseconds(), +changed)


def measure() -> list[dict[str, Any]]:
    """Return the figures of one process and of ten, with the same number of pairs for each process."""
    make_panel()
    one_process, ten = drain(1, PAIRS), drain(PROCESSES, PAIRS)
    ideal = 2 * PAIRS_IN_FLIGHT / LATENCY_S
    return [
        {
            "name": "lock_waits",
            "case": f"{PROCESSES} worker processes, all budgets hold",
            "value": round(ten.wait_ms, 3),
            "unit": "ms a call",
            "aim": "0.5 and less",
            "one process": round(one_process.wait_ms, 3),
            "waited for": {event: round(ms / ten.calls, 3) for event, ms in ten.waited.items()},
            "updated rows a call": {name: round(count / ten.calls, 3) for name, count in ten.updated.most_common()},
        },
        {
            "name": "lock_waits",
            "case": f"calls/s of {PROCESSES} processes over {PROCESSES} times one's",
            "value": round(ten.rate / one_process.rate / PROCESSES, 3),
            "unit": "x",
            "aim": 0.9,
            "calls_per_s": round(ten.rate, 1),
            "one_calls_per_s": round(one_process.rate, 1),
            "most_by_latency": round(ideal, 1),
        },
    ]
