"""search_run: the seconds of a run by a search endpoint over those of a bare script that sends the same requests.

The engine answers after 50 ms; both send 2,000 queries, 20 at a time, and get 20 documents for each. The run stores
the rankings and 5,000 documents; the next runs find these unchanged.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from django.conf import settings

QUERIES = int(os.environ.get("QUORUM_BENCH_QUERIES", "2000"))
DEPTH = 20
DELAY_S = 0.05
ROUNDS = 3


def measure() -> list[dict[str, Any]]:
    """Return the ratio of the first run, whose documents are new, and the median of the next ones."""
    from benchmark.models import SearchEndpoint
    from benchmark.search_endpoints.options import EndpointOptions
    from corpus.models import Collection, Query
    from tests.shop_search import shop_process

    collection = Collection.objects.create(name="bench-search")
    texts = [f"product for query {number}" for number in range(QUERIES)]
    Query.objects.bulk_create(
        Query(collection=collection, external_id=f"q{number}", text=text, content_hash=text)
        for number, text in enumerate(texts)
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "queries.json").write_text(json.dumps(texts))
        with shop_process(folder / "log", DELAY_S) as engine:
            settings.SEARCH_HOSTS = frozenset({f"127.0.0.1:{engine.port}"})
            options = EndpointOptions.read({"name": "shop", **engine.settings})
            SearchEndpoint.objects.create(name="shop", kind=options.kind, settings=options.complete_settings())
            address, file = f"{engine.settings['base_url']}/search", folder / "queries.json"
            rows = [(*run(collection, f"shop-{number}"), *bare(address, file)) for number in range(1 + ROUNDS)]
    figures = []
    for case, part in (("documents that are new", rows[:1]), ("documents that are known", rows[1:])):
        ours, cpu, theirs, bare_cpu = (statistics.median(row[position] for row in part) for position in range(4))
        figures.append(
            {"name": "search_run", "case": f"{QUERIES:,} queries, {case}", "value": round(ours / theirs, 2)}
            | {"unit": "of a bare script's time", "aim": 1.5, "seconds": round(ours, 2), "bare_s": round(theirs, 2)}
            | {"cpu_ms": round(1000 * cpu / QUERIES, 2), "bare_cpu_ms": round(1000 * bare_cpu / QUERIES, 2)}
        )
    return figures


def run(collection: Any, name: str) -> tuple[float, float]:
    """Make a run as a worker does, and return its seconds and those of the processor."""
    from benchmark.models import Run
    from benchmark.runs.builders import RUNS
    from jobs import leases

    started = RUNS.start_or_join(collection, {"kind": "search", "name": name, "depth": DEPTH, "endpoint": "shop"})
    held = leases.claim(Run, pk=started.pk)
    assert held is not None
    started_at, cpu = time.perf_counter(), time.process_time()
    RUNS.perform(held, lambda: False)
    seconds, cpu = time.perf_counter() - started_at, time.process_time() - cpu
    started.refresh_from_db()
    assert (started.state, started.done) == ("ready", QUERIES), started.error
    return seconds, cpu


def bare(address: str, file: Path) -> tuple[float, float]:
    """Return the seconds of the script and those of the processor, as it measured them itself."""
    script = str(Path(__file__).with_name("bare_search.py"))
    command = [sys.executable, script, address, str(file), str(DEPTH)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, cpu = map(float, done.stdout.split())
    return seconds, cpu
