"""paid_twice: calls repeated after all workers were killed, except those in flight at that time."""

import time
from typing import Any

from tests import engine_parts as parts
from tests.instances import until
from tests.repeated import repeated_beyond_flight
from tools.bench import engine_parts as bench

PAIRS = 120


def measure() -> list[dict[str, Any]]:
    """Kill two worker processes in the middle of a campaign, start new ones, and count the repeated calls."""
    collection = parts.collection_of(PAIRS, "paid-twice")
    with bench.model_server() as (models, _):
        bench.panel(models)
        campaign = bench.begin(collection, "debate+ensemble")
        with bench.workers(2) as child:
            until(lambda: len(models.requests()) > PAIRS * 2)
            killed_at = time.time()
            bench.kill(child)
        time.sleep(0.2)
        dead_at = time.time()
        before = len(models.requests())
        with bench.workers(2):
            campaign = bench.begin(collection, "debate+ensemble")
            bench.wait_until_finished(campaign, 120)
        requests = models.requests()
        repeated, in_flight = repeated_beyond_flight(requests, killed_at, dead_at)
    figure = {"name": "paid_twice", "value": repeated, "unit": "calls", "aim": 0, "in_flight_at_kill": in_flight}
    return [{**figure, "calls_before_kill": before, "calls": len(requests), "needed": PAIRS * 7}]
