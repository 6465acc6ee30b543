"""paid_twice: calls repeated after SIGKILL of all workers mid-campaign, beyond those in flight at the kill."""

import time
from collections import Counter
from typing import Any

from tests import engine_parts as parts
from tests.bench import engine_parts as bench

PAIRS = 120
GRACE_S = 0.05
"""An answer that came less than this before the kill may not be committed yet (CONTRACT)."""


def repeated_beyond_flight(requests: list[dict[str, Any]], killed: float, dead: float) -> tuple[int, int]:
    """(calls sent twice without need, calls in flight at the kill), from the server's log.

    `killed`: just before the signal; `dead`: when no worker was left, and none had started anew. What arrives in
    between was sent before the kill, too.
    """
    sent = Counter(request["sha256"] for request in requests)
    flying = {r["sha256"] for r in requests if r["arrived"] <= dead and r["answered"] > killed - GRACE_S}
    repeated = sum(times - 1 - (key in flying) for key, times in sent.items() if times > 1)
    return repeated, len(flying)


def measure() -> list[dict[str, Any]]:
    """Kill two worker processes in the middle of a campaign, start new ones, count."""
    collection = parts.collection_of(PAIRS, "paid-twice")
    with bench.model_server() as (models, _):
        bench.panel(models)
        campaign = bench.begin(collection, "debate+ensemble")
        with bench.workers(2) as child:
            bench.wait_for(lambda: len(models.requests()) > PAIRS * 2, 60)
            killed = time.time()
            bench.kill(child)
        time.sleep(0.2)
        dead = time.time()
        before = len(models.requests())
        with bench.workers(2):
            campaign = bench.begin(collection, "debate+ensemble")
            bench.wait_until_finished(campaign, 120)
        requests = models.requests()
        repeated, flying = repeated_beyond_flight(requests, killed, dead)
    figure = {"name": "paid_twice", "value": repeated, "unit": "calls", "aim": 0, "in_flight_at_kill": flying}
    return [{**figure, "calls_before_kill": before, "calls": len(requests), "needed": PAIRS * 7}]
