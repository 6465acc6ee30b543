"""lock_waits: how long a stored call waits for rows that other worker processes lock, and what its commits update.

One worker process and then ten drain a campaign whose own budget and whose collection's budgets all
hold. Waiting is the mean number of backends that wait for a lock, by pg_stat_activity some hundred
times a second, times the seconds of the run. QUORUM_BENCH_LOCKS sets another number of pairs for
each process.
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
    """Backends that wait for a lock, looked at by a thread with a connection of its own."""

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
        """By what was waited for: all that was waited in the run."""
        return {event: 1000 * self.seconds * count / self.looks for event, count in self.found.most_common()}


@dataclass(frozen=True)
class Drained:
    """A campaign that worker processes drained: its calls, their rate, and what they waited for and updated."""

    processes: int
    calls: int
    rate: float
    waited: dict[str, float]
    updated: Counter[str]

    @property
    def wait_ms(self) -> float:
        """What a call waited for locks, all kinds together."""
        return sum(self.waited.values()) / self.calls


def make_panel() -> Panel:
    """Two debaters with a price; nobody is at their address."""
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
    """A debate of one round over so many pairs, whose budgets all hold and are never reached."""
    collection = parts.collection_of(pairs, name)
    configure_collection(collection, {"budget": 1000.0, "daily_budget": 1000.0})
    wanted = configurations.build_configuration(policy="debate")
    started = lifecycle.start_campaign(collection=collection, configuration=wanted, budget=1000.0)
    assert started.campaign is not None
    return started.campaign


def updates() -> Counter[str]:
    """Rows that were updated so far, by table."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(UPDATED)
        return Counter(dict(cursor.fetchall()))


def drain(processes: int, pairs: int, environment: dict[str, str] | None = None) -> Drained:
    """Let so many processes drain a campaign of so many pairs for each of them."""
    campaign = begin(pairs * processes, f"locks-{processes}")
    before = updates()
    command = [sys.executable, "-m", "tools.bench.simulated_workers", str(campaign.pk), str(processes)]
    with LockWaits() as waits:
        subprocess.run(command, cwd=settings.BASE_DIR, env=environment, check=True)
    with connection.cursor() as cursor:
        cursor.execute(RATE, [campaign.pk])
        calls, seconds = cursor.fetchone()
    campaign.refresh_from_db()
    assert campaign.state == Campaign.State.FINISHED and calls == 2 * pairs * processes
    assert not Attempt.objects.filter(campaign=campaign).exclude(outcome="labelled").exists()
    changed = updates()
    changed.subtract(before)
    return Drained(processes, calls, calls / seconds, waits.milliseconds(), +changed)


def measure() -> list[dict[str, Any]]:
    """One process, then ten; each with the same number of pairs for a process."""
    make_panel()
    one, ten = drain(1, PAIRS), drain(PROCESSES, PAIRS)
    ideal = 2 * PAIRS_IN_FLIGHT / LATENCY_S
    return [
        {
            "name": "lock_waits",
            "case": f"{PROCESSES} worker processes, all budgets hold",
            "value": round(ten.wait_ms, 3),
            "unit": "ms a call",
            "aim": "0.5 and less",
            "one process": round(one.wait_ms, 3),
            "waited for": {event: round(ms / ten.calls, 3) for event, ms in ten.waited.items()},
            "updated rows a call": {name: round(count / ten.calls, 3) for name, count in ten.updated.most_common()},
        },
        {
            "name": "lock_waits",
            "case": f"calls/s of {PROCESSES} processes over {PROCESSES} times one's",
            "value": round(ten.rate / one.rate / PROCESSES, 3),
            "unit": "x",
            "aim": 0.9,
            "calls_per_s": round(ten.rate, 1),
            "one_calls_per_s": round(one.rate, 1),
            "most_by_latency": round(ideal, 1),
        },
    ]
