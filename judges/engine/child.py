"""The engine of one worker process: a thread with one event loop, made after the fork and kept with its clients.

Celery's thread only waits for drains. The loop goes on between them, so calls that are out when a
drain ends come home, and leases are renewed as long as the process lives.
"""

import asyncio
import concurrent.futures
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from django.conf import settings
from psycopg import Connection
from redis.asyncio import Redis

from judges.batch.batch_loop import BatchWorkerLoop
from judges.costs import budget
from judges.engine import leases
from judges.engine.cache import Cache
from judges.engine.calls import Tools
from judges.engine.limits import RateLimits, process_name
from judges.engine.plan import Plan
from judges.engine.worker_loop import WorkerLoop
from judges.engine.writer import ResultWriter
from judges.providers import close_providers, load_provider, open_provider

BEAT_S = 2.0

logger = logging.getLogger(__name__)


class Child:
    """Started once in each worker process; `run_campaign` is called from Celery's thread."""

    def __init__(self, dsn: dict[str, Any], stopping: Callable[[], bool]) -> None:
        self.dsn, self.stopping = dsn, stopping
        self.holder = process_name()
        self.flights: dict[int, WorkerLoop | BatchWorkerLoop] = {}
        self.draining: set[int] = set()
        # A future and not an event, because a failure of the thread has to reach `result` below with its exception.
        self.started: concurrent.futures.Future[None] = concurrent.futures.Future()
        self.thread = threading.Thread(target=lambda: asyncio.run(self._main()), name="engine", daemon=True)
        self.thread.start()
        self.started.result(60)

    def run_campaign(self, plan: Plan) -> float | None:
        """Work on the campaign for a time slice; return seconds until there is more to do, None where nothing is."""
        return asyncio.run_coroutine_threadsafe(self._run_campaign(plan), self.loop).result()

    def close(self) -> None:
        """Store the answers of open calls, release the other pairs, and end the loop."""
        # Half a minute: calls that are out may still answer, and what they cost is stored then.
        asyncio.run_coroutine_threadsafe(self._shut_down(), self.loop).result(30)
        self.loop.call_soon_threadsafe(self.end.set)
        self.thread.join(10)

    async def _main(self) -> None:
        try:
            self.loop = asyncio.get_running_loop()
            self.end = asyncio.Event()
            self.redis: Redis = Redis.from_url(settings.REDIS_URL)
            writer = ResultWriter(self.dsn, settings.VAR / "spool")
            writer.start()
            limits = RateLimits(lambda: Redis.from_url(settings.REDIS_URL), settings.PREFIX, self.holder)
            sending = asyncio.Semaphore(settings.CALLS_IN_FLIGHT)
            self.tools = Tools(writer, Cache(writer), limits, sending, self.holder, settings.RETRY_SECONDS)
        except Exception as error:
            self.started.set_exception(error)
            return
        self.started.set_result(None)
        beats = [asyncio.create_task(beat) for beat in (self._renew(), self._beat())]
        await self.end.wait()
        for beat in beats:
            beat.cancel()
        await close_providers()
        await limits.close()
        await self.redis.aclose()
        await asyncio.to_thread(writer.stop)

    async def _run_campaign(self, plan: Plan) -> float | None:
        await self.tools.writer.ready()
        for judge in plan.judges:  # the SDKs are loaded before anything is claimed: that takes seconds
            await asyncio.to_thread(load_provider, judge.provider)
            open_provider(judge)
        # Kept between time slices while pairs are held, so that a slice that ends does not cancel its calls.
        flight = self.flights.get(plan.campaign)
        if flight is not None:
            flight.apply_plan(plan)
        else:
            kind = BatchWorkerLoop if plan.protocol.batch else WorkerLoop
            flight = self.flights[plan.campaign] = kind(self.tools, plan)
        self.draining.add(plan.campaign)
        seconds = None
        try:
            seconds = await flight.run_time_slice()
            return seconds
        finally:
            self.draining.discard(plan.campaign)
            if not flight.held:
                # The next slice begins with a budget of its own, which knows nothing of what this
                # one holds ahead: as long as this process lives it would be renewed, and missing
                # from the budget.
                await flight.budget.close()
                # What was learned of batches that are out stays until all of them have ended.
                if seconds is None or not isinstance(flight, BatchWorkerLoop):
                    self.flights.pop(plan.campaign, None)

    async def _shut_down(self) -> None:
        for flight in list(self.flights.values()):
            flight.stopping = True
            await flight._shut_down()

    async def _renew(self) -> None:
        """Renew leases of pairs and of reservations, every quarter of their time."""
        # A quarter of the lease: three renewals may fail before anybody else takes the pairs.
        while True:
            await asyncio.sleep(settings.LEASE_SECONDS / 4)
            held = [one for flight in self.flights.values() for one in flight.held]
            if not held:
                continue

            def ask(connection: Connection[Any], held: list[leases.Claimed] = held) -> set[int]:
                budget.renew_reservations(connection, self.holder, settings.LEASE_SECONDS)
                return leases.renew(connection, held, settings.LEASE_SECONDS)

            try:
                ours = await self.tools.writer.ask(ask)
            except Exception:
                logger.exception("the leases cannot be renewed")
                continue
            # Read anew: a pair that ended while the statement ran is not lost, although no row came back for it.
            still = {one.work for flight in self.flights.values() for one in flight.held}
            for one in held:
                one.lease.lost = one.lease.lost or (one.work in still and one.work not in ours)

    async def _beat(self) -> None:
        """Say which campaigns are being drained, and notice that the worker shuts down."""
        told = 0.0
        while True:
            await asyncio.sleep(0.2)
            if self.stopping():
                for flight in self.flights.values():
                    flight.stopping = True
            if time.monotonic() - told < BEAT_S:
                continue
            told = time.monotonic()
            try:
                for campaign in self.draining:
                    # Members of dead workers go by their time; the whole key goes when nobody has
                    # worked for ten minutes.
                    await self.redis.zadd(f"{settings.PREFIX}:drains:{campaign}", {self.holder: time.time()})
                    await self.redis.expire(f"{settings.PREFIX}:drains:{campaign}", 600)
            except Exception as error:
                logger.debug("Redis is away: %s", error)
