"""dashboard_ms: milliseconds and SQL statements of the home page of a large collection.

The collection has 100,000 generated pairs with a million attempts; QUORUM_BENCH_PAIRS=1000000 makes ten times as many,
which takes minutes and gigabytes. The figure is the median of twenty requests of an admin through all of Django, after
two requests to warm up.
"""

import os
import statistics
import time
from typing import Any

from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from annotation.quality.label_quality.statistics import STATISTICS
from tests.large_site import ATTEMPTS, analyse, large_site

PAIRS = int(os.environ.get("QUORUM_BENCH_PAIRS", "100000"))
REQUESTS = 20


def measure() -> list[dict[str, Any]]:
    """Return the median and the worst time of the home page and of the first page of its pairs."""
    started_at = time.perf_counter()
    collection, campaign, charlie = large_site(PAIRS)
    analyse()
    generated_s = time.perf_counter() - started_at
    started_at = time.perf_counter()
    STATISTICS.compute_now(collection)
    computed_s = time.perf_counter() - started_at
    call_command("collectstatic", interactive=False, verbosity=0)
    client = Client(headers={"host": "127.0.0.1"})
    client.force_login(charlie.user)
    shape = f"{PAIRS:,} pairs, {PAIRS * ATTEMPTS:,} attempts"
    pages = {
        "home": f"/c/{collection.name}/",
        "its pairs": f"/c/{collection.name}/pairs/?campaign={campaign.number}&state=open",
    }
    return [
        {
            "name": "dashboard_ms",
            "case": f"{name} of {shape}",
            **timed(client, address),
            "unit": "ms",
            "aim": "300 and less, 20 statements",
            "generated_s": round(generated_s),
            "statistics_s": round(computed_s, 1),
        }
        for name, address in pages.items()
    ]


def timed(client: Client, address: str) -> dict[str, Any]:
    """Return the milliseconds of sequential requests to an address, and the number of statements of one request."""
    for _ in range(2):
        assert client.get(address).status_code == 200
    milliseconds = []
    for _ in range(REQUESTS):
        started_at = time.perf_counter()
        client.get(address)
        milliseconds.append(1000 * (time.perf_counter() - started_at))
    with CaptureQueriesContext(connection) as captured:
        client.get(address)
    slowest = sorted(captured.captured_queries, key=lambda query: -float(query["time"]))[:3]
    return {
        "value": round(statistics.median(milliseconds), 1),
        "worst": round(max(milliseconds), 1),
        "statements": len(captured),
        "slowest_ms": [round(1000 * float(query["time"]), 1) for query in slowest],
    }
