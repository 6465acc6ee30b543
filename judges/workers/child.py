"""The engine of one worker process: a thread with one event loop, started after the fork and kept with its clients.

Celery's thread only waits for a time slice to end. The loop runs on between slices, so that calls in
flight at the end of one are received, and leases are renewed as long as the process lives.
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
from judges.engine import budget, leases
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

    def __init__(self, dsn: dict[str, Any], should_stop: Callable[[], bool]) -> None:
        self.dsn, self.stopping = dsn, should_stop
        self.holder = process_name()
        self.worker_loops: dict[int, WorkerLoop | BatchWorkerLoop] = {}  # By campaign.
        self.draining: set[int] = set()
        # A future and not an event, because an exception of the thread has to reach `result` below.
        self.started: concurrent.futures.Future[None] = concurrent.futures.Future()
        self.thread = threading.Thread(target=lambda: asyncio.run(self._main()), name="engine", daemon=True)
        self.thread.start()
        self.started.result(60)

    def run_campaign(self, plan: Plan) -> float | None:
        """Work on the campaign for a time slice; return the seconds until there is more to do, None if nothing is."""
        return asyncio.run_coroutine_threadsafe(self._run_campaign(plan), self.loop).result()

    def close(self) -> None:
        """Store the answers of open calls, release the other pairs, and end the loop."""
        # Half a minute: calls in flight may still be answered, and then their cost is stored.
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
        for judge in plan.judges:  # SDKs take seconds to load, so this comes before the first claim
            await asyncio.to_thread(load_provider, judge.provider)
            open_provider(judge)
        # Kept between time slices while it has pairs, so that a slice that ends does not cancel its calls.
        worker_loop = self.worker_loops.get(plan.campaign)
        if worker_loop is not None:
            worker_loop.apply_plan(plan)
        else:
            kind = BatchWorkerLoop if plan.protocol.batch else WorkerLoop
            worker_loop = self.worker_loops[plan.campaign] = kind(self.tools, plan)
        self.draining.add(plan.campaign)
        seconds = None
        try:
            seconds = await worker_loop.run_time_slice()
            return seconds
        finally:
            self.draining.discard(plan.campaign)
            if not worker_loop.claimed_pairs:
                # The next slice begins with a new budget, which does not know the money that this
                # one reserved ahead: it would be renewed as long as this process lives, and be
                # missing from the budget.
                await worker_loop.budget.close()
                # A batch loop keeps what it learned of open batches until all of them have ended.
                if seconds is None or not isinstance(worker_loop, BatchWorkerLoop):
                    self.worker_loops.pop(plan.campaign, None)

    async def _shut_down(self) -> None:
        for worker_loop in list(self.worker_loops.values()):
            worker_loop.stopping = True
            await worker_loop._shut_down()

    def _claimed_pairs(self) -> list[leases.Claimed]:
        return [claimed for worker_loop in self.worker_loops.values() for claimed in worker_loop.claimed_pairs]

    async def _renew(self) -> None:
        """Renew the leases of pairs and of reservations, four times in each lease."""
        # A quarter of the lease: three renewals may fail before another worker takes the pairs.
        while True:
            await asyncio.sleep(settings.LEASE_SECONDS / 4)
            pairs = self._claimed_pairs()
            if not pairs:
                continue

            def renew(connection: Connection[Any], pairs: list[leases.Claimed] = pairs) -> set[int]:
                budget.renew_reservations(connection, self.holder, settings.LEASE_SECONDS)
                return leases.renew(connection, pairs, settings.LEASE_SECONDS)

            try:
                renewed_ids = await self.tools.writer.ask(renew)
            except Exception:
                logger.exception("the leases cannot be renewed")
                continue
            # Listed again: a pair that ended while the statement ran is not lost, although no row came back for it.
            lost_ids = {claimed.work for claimed in self._claimed_pairs()} - renewed_ids
            for claimed in pairs:
                claimed.lease.lost = claimed.lease.lost or claimed.work in lost_ids

    async def _beat(self) -> None:
        """Report in Redis which campaigns this process works on, and notice that the worker shuts down."""
        reported_at = 0.0
        while True:
            await asyncio.sleep(0.2)
            if self.stopping():
                for worker_loop in self.worker_loops.values():
                    worker_loop.stopping = True
            if time.monotonic() - reported_at < BEAT_S:
                continue
            reported_at = time.monotonic()
            try:
                for campaign in self.draining:
                    # Entries of dead workers are told by their time; the key goes after ten minutes
                    # without a worker.
                    await self.redis.zadd(f"{settings.PREFIX}:drains:{campaign}", {self.holder: time.time()})
                    await self.redis.expire(f"{settings.PREFIX}:drains:{campaign}", 600)
            except Exception as error:
                logger.debug("Redis is away: %s", error)
