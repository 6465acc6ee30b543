"""The one writer of a worker process: a thread with one connection that commits the results of the last 20 ms.

Its callers await the commit. While PostgreSQL is away, results wait in memory, answers also in the
pending-answer log, and questions (claims, leases, cache, budget) wait with them.
"""

import asyncio
import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import psycopg

from judges.costs import counters
from judges.engine.pending_answers import PendingAnswerLog
from judges.engine.rows import StoredRow, store_rows

# Rows are gathered this long before a commit: one statement serves hundreds of calls a second, and the
# wait is short beside that for the network.
PAUSE_S = 0.015
CONFLICTS = (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure)
BATCH = 200
STALL_S = 2.0  # Work that takes longer shows that PostgreSQL is away or stalled.
# Attempt ids are drawn ahead from the sequence, more than the calls that can be in flight while PostgreSQL is away.
IDS = 1024

logger = logging.getLogger(__name__)
Result = TypeVar("Result")
Question = Callable[[psycopg.Connection[Any]], Any]
Waiting = asyncio.Future[Any]


class ResultWriter:
    """Writer of a process's results. All methods are called from the event loop's thread."""

    def __init__(self, dsn: dict[str, Any], folder: Path) -> None:
        self.dsn = dsn
        self.spool = PendingAnswerLog(folder)
        self.shard = counters.random_shard()  # Until the connection claims one.
        self.queue: deque[tuple[StoredRow | Question, Waiting]] = deque()
        self.awake = threading.Event()
        self.stopping = False
        self.ids: deque[int] = deque()
        # When the current work began, and when PostgreSQL last came back: monotonic seconds.
        self.began = self.back = float("-inf")
        self.connection: psycopg.Connection[Any] | None = None
        self.thread = threading.Thread(target=self._run, name="writer", daemon=True)

    def start(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.thread.start()

    def stop(self) -> None:
        """End the thread once its queue is empty."""
        self.stopping = True
        self.awake.set()
        self.thread.join(10)

    async def write(self, row: StoredRow) -> None:
        """Store the row; return once it is committed."""
        await self._put(row)

    async def ask(self, question: Callable[[psycopg.Connection[Any]], Result]) -> Result:
        """Run a function of the connection in its own transaction, and return its result; it may be run again."""
        result: Result = await self._put(question)
        return result

    async def next_id(self) -> int:
        """Return an id for an attempt; wait for the next block of ids where none is left."""
        while not self.ids:
            await self.ready()
        return self.ids.popleft()

    async def ready(self) -> None:
        """Wait until PostgreSQL is connected and there are ids."""
        await self.ask(lambda connection: None)

    def stalled(self, within: float) -> bool:
        """Return whether PostgreSQL is stalled, or was until `within` seconds ago."""
        now = time.monotonic()
        return now - self.began > STALL_S or now - self.back < within

    def _put(self, work: StoredRow | Question) -> Waiting:
        future = self.loop.create_future()
        self.queue.append((work, future))
        # Set only if it is not yet: the event's lock costs more than the check.
        if not self.awake.is_set():
            self.awake.set()
        return future

    def _run(self) -> None:
        self._run_patiently(self._draw_ids)
        while not (self.stopping and not self.queue):
            # No timeout is needed: `stop` sets the event too.
            self.awake.wait()
            # A full batch is written at once.
            if len(self.queue) < BATCH:
                time.sleep(PAUSE_S)
            self.awake.clear()
            self._serve([self.queue.popleft() for _ in range(min(len(self.queue), BATCH))])
            if self.queue:
                self.awake.set()
        if self.connection is not None:
            self.connection.close()
        self.spool.close()

    def _serve(self, batch: list[tuple[StoredRow | Question, Waiting]]) -> None:
        results: list[tuple[Waiting, Any]] = []
        # Rows first: a question queued together with them, a claim say, finds them stored.
        if rows := [(work, future) for work, future in batch if isinstance(work, StoredRow)]:
            results += self._write(rows)
        for work, future in batch:
            if not isinstance(work, StoredRow):
                results.append((future, self._transact(work)))
        if len(self.ids) < IDS // 2:
            self._run_patiently(self._draw_ids)
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(_resolve_futures, results)

    def _write(self, batch: list[tuple[StoredRow, Waiting]]) -> list[tuple[Waiting, Any]]:
        """Store rows together; after an error store them one by one, so that only the faulty row fails."""
        rows = [row for row, _ in batch]
        result = self._transact(lambda connection: store_rows(connection, rows, self.shard))
        # Split only on an error: the common case stays one statement.
        if isinstance(result, Exception) and len(batch) > 1:
            return [resolved for row in batch for resolved in self._write([row])]
        return [(future, result) for _, future in batch]

    def _transact(self, work: Question) -> Any:
        def run(connection: psycopg.Connection[Any]) -> Any:
            with connection.transaction():
                return work(connection)

        return self._run_patiently(run)

    def _draw_ids(self, connection: psycopg.Connection[Any]) -> None:
        sequence = "SELECT nextval(pg_get_serial_sequence('judges_attempt', 'id')) FROM generate_series(1, %s)"
        # Blocks of ids come from the sequence, so that a call has its id before its row is stored.
        self.ids.extend(row[0] for row in connection.execute(sequence, [IDS]))

    def _run_patiently(self, work: Callable[[psycopg.Connection[Any]], Any]) -> Any:
        """Run `work` until PostgreSQL answers, however long that takes.

        Return its result, or the exception of any error that is not PostgreSQL's absence.
        """
        self.began = time.monotonic()
        for wait in itertools.chain((0.05, 0.2, 0.5), itertools.repeat(1.0)):
            try:
                if self.connection is None or self.connection.closed:
                    self.connection = psycopg.connect(**self.dsn, autocommit=True)
                    # The lock on the shard went with the old connection, and another process may have the shard by now.
                    self.shard = counters.claim_shard(self.connection)
                result = work(self.connection)
                # PostgreSQL answers: answers need no fsync any more.
                self.spool.relax()
                if time.monotonic() - self.began > STALL_S:
                    self.back = time.monotonic()
                return result
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                # Work is never given up: the cost of calls must be stored, however long this takes.
                logger.warning("PostgreSQL is away, %d wait: %s", len(self.queue), str(error).split("\n")[0])
                # After a deadlock or a serialization failure the connection is fine: the transaction is run again.
                if self.connection is not None and not isinstance(error, CONFLICTS):
                    self.connection.close()
                # While PostgreSQL is away the machine may go down too, so the log is written with fsync.
                self.spool.sync()
                if self.loop.is_closed():
                    return error
                time.sleep(wait)
            except Exception as error:  # raised where the result is awaited
                return error


def _resolve_futures(results: list[tuple[Waiting, Any]]) -> None:
    for future, result in results:
        if future.done():  # the waiting task was cancelled
            continue
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)
