"""`python -m tools.bench.simulated_workers CAMPAIGN PROCESSES`: worker processes with simulated judges.

Each process has the engine of a real worker process, without the network and the provider's SDK: every judge answers
yes after `LATENCY_S`. The processes end with the campaign.
"""

import asyncio
import json
import multiprocessing
import sys

from judges.records import Body, Judge, ModelRequest, Reply, Usage

LATENCY_S = 0.1
PAIRS_IN_FLIGHT = 4
ANSWER = json.dumps({"reference": [], "reason": "It says so.", "response": "yes"})


class SimulatedProvider:
    """A provider that answers yes after `LATENCY_S`, with its usage of tokens."""

    def __init__(self, judge: Judge) -> None:
        del judge

    async def complete(self, request: ModelRequest) -> Reply:
        await asyncio.sleep(LATENCY_S)
        body = Body(200, ANSWER)
        if request.arrived is not None:
            request.arrived(body)
        return self.meaning(body, request.judge)

    def meaning(self, body: Body, judge: Judge) -> Reply:
        return Reply(body.text, body.text, "stop", Usage(input=900, output=40), judge.model)

    async def close(self) -> None:
        pass


def work(campaign: int) -> None:
    """Run the campaign to its end, as a worker's process does."""
    from django.db import connection

    from judges.engine.plan import load_plan
    from judges.workers.child import Child
    from store.sql import database_parameters

    plan = load_plan(campaign)
    connection.close()
    assert plan is not None
    child = Child(database_parameters(), lambda: False)
    while child.run_campaign(plan) is not None:
        pass
    child.close()


def main(campaign: int, processes: int) -> int:
    """Fork the processes after all imports, and return how many of them failed."""
    import django
    from django.conf import settings

    django.setup()
    from judges import providers
    from judges.engine import plan
    from judges.workers import child

    assert child and plan  # Imported once, before the fork.
    settings.PAIRS_IN_FLIGHT = PAIRS_IN_FLIGHT
    providers.CLASSES["chat", ""] = "tools.bench.simulated_workers.SimulatedProvider"
    fork = multiprocessing.get_context("fork")
    children = [fork.Process(target=work, args=[campaign]) for _ in range(processes)]
    for process in children:
        process.start()
    for process in children:
        process.join()
    return sum(process.exitcode != 0 for process in children)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
