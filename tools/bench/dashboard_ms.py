"""dashboard_ms: milliseconds to answer the home of a large collection, and the statements it costs.

100,000 pairs with a million attempts, generated; QUORUM_BENCH_PAIRS=1000000 makes ten times as many
(minutes, and gigabytes). The median of twenty requests through Django's whole stack, of a signed-in
admin, after two to warm up.
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
    """Median and worst of the home, and of the first page of pairs behind it."""
    began = time.perf_counter()
    collection, campaign, charlie = large_site(PAIRS)
    analyse()
    generated = time.perf_counter() - began
    began = time.perf_counter()
    STATISTICS.compute_now(collection)
    computed = time.perf_counter() - began
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
            "generated_s": round(generated),
            "statistics_s": round(computed, 1),
        }
        for name, address in pages.items()
    ]


def timed(client: Client, address: str) -> dict[str, Any]:
    """Milliseconds of requests to one address, one after another, and the statements of one."""
    for _ in range(2):
        assert client.get(address).status_code == 200
    took = []
    for _ in range(REQUESTS):
        began = time.perf_counter()
        client.get(address)
        took.append(1000 * (time.perf_counter() - began))
    with CaptureQueriesContext(connection) as found:
        client.get(address)
    slowest = sorted(found.captured_queries, key=lambda one: -float(one["time"]))[:3]
    return {
        "value": round(statistics.median(took), 1),
        "worst": round(max(took), 1),
        "statements": len(found),
        "slowest_ms": [round(1000 * float(one["time"]), 1) for one in slowest],
    }
