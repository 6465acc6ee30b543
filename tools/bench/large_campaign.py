"""large_campaign: seconds to enqueue 100,000 pairs for one judge, and the memory that they add to a worker.

QUORUM_BENCH_LARGE sets another number of pairs.
"""

import os
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from django.db import connection

from corpus.importing.service import ImportFiles, import_collection
from corpus.models import Collection
from judges.campaigns import configurations, lifecycle, selectors
from tests import engine_parts as parts
from tools.bench import engine_parts as bench
from tools.bench import import_per_s

PAIRS = int(os.environ.get("QUORUM_BENCH_LARGE", 100_000))
WARM_UP = 2_000
LOOK_S = 0.5


def measure() -> list[dict[str, Any]]:
    """Enqueue the pairs, judge them with two worker processes, and sample the memory of these all the time."""
    with tempfile.TemporaryDirectory() as folder:
        files = import_per_s.generate(Path(folder))
        import_collection("large", ImportFiles(**files))
    collection = Collection.objects.get(name="large")
    parts.collection_of(WARM_UP, "warm")
    with bench.model_server() as (models, _):
        bench.panel(models)
        configuration = configurations.build_configuration(policy="single")
        with bench.workers(2, QUORUM_LEASE_S="30") as child:
            bench.wait_until_finished(start("warm", configuration, None), 120)
            with Memory(child.pid) as memory:
                before = memory.now()
                started_at = time.perf_counter()
                campaign = start("large", configuration, PAIRS)
                enqueue_s = time.perf_counter() - started_at
                bench.wait_until_finished(campaign, 850)
                seconds = time.perf_counter() - started_at
        calls = len(models.requests()) - WARM_UP
    connection.close()
    status = selectors.campaign_status(collection, campaign)
    added = (memory.peak - before) / 2**20
    name = f"{PAIRS:,} pairs, one judge, two worker processes"
    counts = {"labelled": status["labelled"], "failed": status["failed"], "calls": calls}
    rate = {"seconds": round(seconds, 1), "calls_per_s": round(calls / seconds, 1)}
    return [
        {"name": "enqueue_s", "case": name, "value": round(enqueue_s, 2), "unit": "s", "aim": "under 10"},
        {
            "name": "queue_mb",
            "case": name,
            "value": round(added, 1),
            "unit": "MB",
            "aim": "under 100",
            **rate,
            **counts,
        },
    ]


def start(name: str, configuration: configurations.Configuration, limit: int | None) -> Any:
    """Start a campaign on the collection of this name."""
    collection = Collection.objects.get(name=name)
    started = lifecycle.start_campaign(collection=collection, configuration=configuration, limit=limit)
    assert started.campaign is not None
    return started.campaign


class Memory:
    """The resident memory of all processes of a group, sampled twice a second."""

    def __init__(self, group: int) -> None:
        self.group = group
        self.peak = 0
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> "Memory":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self.thread.join()

    def now(self) -> int:
        """Return the current memory in bytes."""
        pages = 0
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = path.read_text().rpartition(") ")[2].split()
            except OSError:
                continue
            pages += int(fields[21]) if int(fields[2]) == self.group else 0
        return pages * os.sysconf("SC_PAGE_SIZE")

    def _look(self) -> None:
        while not self.done.wait(LOOK_S):
            self.peak = max(self.peak, self.now())
