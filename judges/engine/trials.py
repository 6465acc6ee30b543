"""Failures of judges since their last usable answer, shared by all workers, and the calls held back because of them.

After a refusal that may concern the whole account, the campaign sends one call at a time, about
another document: a trial, which shows whether the account answers (judges.domain.refusals decides).
The failures are stored in Redis, beside the limits, and read with every grant of permits.
"""

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import Mapping
from contextvars import Context
from dataclasses import asdict
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from judges.domain import refusals
from judges.domain.refusals import Failure, Meaning

# Seconds without progress after which a trial is given up; the failures are kept.
STALL_S = 2.0
# Calls of a campaign that a process has in flight while one of their judges has not given it a usable
# answer yet: its account may refuse every call, and no more is paid for until that is known.
FIRST = 24
DAY_MS = 86_400_000

APPEND = """
local stored = redis.call('HGET', KEYS[1], ARGV[1])
local failures = stored and cjson.decode(stored) or {}
table.insert(failures, cjson.decode(ARGV[2]))
while #failures > tonumber(ARGV[3]) do table.remove(failures, 1) end
local all = cjson.encode(failures)
redis.call('HSET', KEYS[1], ARGV[1], all)
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return all
"""

Account = tuple[str, str, str]
Accounts = Mapping[int, Account]  # Of the campaign's judges, by their id.
Doubt = tuple[str, int]  # A start of a campaign (`Plan.start`) and a judge.

logger = logging.getLogger(__name__)


class Trials:
    """Failures of all campaigns' judges, and the calls that this process has in flight meanwhile."""

    def __init__(self, redis: Redis, prefix: str) -> None:
        self.redis, self.key, self.failing = redis, f"{prefix}:failures", f"{prefix}:failing"
        self.append = redis.register_script(APPEND)
        self.failures: dict[Doubt, tuple[Failure, ...]] = {}
        self.written_at = 0.0  # When this process last changed the failures: what was read before is older.
        self.writing = 0
        self.proven: set[Doubt] = set()  # Judges that gave this process a usable answer.
        self.out: Counter[Doubt] = Counter()  # Calls in flight.
        self.begun: Counter[str] = Counter()  # Refusals that have begun to arrive and are not read yet, by start.
        self.lifted: dict[Doubt, Failure] = {}  # The last failure of a trial that was given up.
        self.progress_at = 0.0  # When a trial last made progress.
        self.changed = asyncio.Event()
        self.tasks: set[asyncio.Task[None]] = set()
        # When this process sent the last answered call of each account: seconds since 1970.
        self.answers: dict[Account, float] = {}

    def merge(self, fields: Mapping[bytes, bytes], requested_at: float) -> None:
        """Take over the failures that Redis had at `requested_at`, by the monotonic clock."""
        if self.writing or requested_at < self.written_at or not (fields or self.failures):
            return
        failures = {_doubt(name): _failures(value) for name, value in fields.items()}
        if failures != self.failures:
            self.failures = failures
            self._notify()

    async def failed(self, doubt: Doubt, failure: Failure) -> None:
        """Add a failure, for all workers."""
        self.failures[doubt] = (*self.failures.get(doubt, ()), failure)[-refusals.KEPT :]
        self._notify()
        arguments: list[str | int] = [_field(doubt), json.dumps(asdict(failure)), refusals.KEPT, DAY_MS]
        self.writing += 1
        try:
            stored = await self.append(keys=[self.key], args=arguments)
            self.failures[doubt] = _failures(stored)
        except (RedisError, OSError) as error:
            logger.warning("Redis is away, a refusal is known to this worker alone: %s", error)
        finally:
            self.writing, self.written_at = self.writing - 1, time.monotonic()
        self._notify()

    def answered(self, doubt: Doubt, sent: float) -> None:
        """Note a usable answer to a call sent at `sent`: it may end the judge's failures in a row."""
        if doubt not in self.proven:
            self.proven.add(doubt)
            self._notify()
        if doubt in self.failures and refusals.is_cleared(self.failures[doubt], sent):
            del self.failures[doubt]
            self._notify()
            task = asyncio.create_task(self._forget(doubt), context=Context())
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def _forget(self, doubt: Doubt) -> None:
        self.writing += 1
        try:
            await self.redis.hdel(self.key, _field(doubt))
        except (RedisError, OSError) as error:
            logger.warning("Redis is away, an answer is known to this worker alone: %s", error)
        finally:
            self.writing, self.written_at = self.writing - 1, time.monotonic()

    async def forget_start(self, start: str, *, earlier: bool = False) -> None:
        """Forget the failures of a start; with `earlier`, those of the campaign's other starts instead."""
        campaign = start.partition(":")[0]
        for doubt in list(self.failures):
            if (doubt[0].partition(":")[0] == campaign and doubt[0] != start) if earlier else doubt[0] == start:
                self.failures.pop(doubt, None)
                await self._forget(doubt)

    async def note_failing(self, campaign: int, question: str, since: float, error: str) -> None:
        """Note, for all workers, since when and why a question has failed that waits."""
        key = f"{self.failing}:{campaign}"  # Forgotten with retry-failed (judges.engine.notifications).
        try:
            await self.redis.hsetnx(key, question, json.dumps([since, error]))
            await self.redis.pexpire(key, DAY_MS)
        except (RedisError, OSError) as redis_error:
            logger.warning("Redis is away, a failing question is not noted: %s", redis_error)

    async def find_failing(self, campaign: int, question: str) -> tuple[float, str] | None:
        """Return since when and why the question has failed; None if it never waited after a failure."""
        try:
            entry = await self.redis.hget(f"{self.failing}:{campaign}", question)
        except (RedisError, OSError):
            return None
        if entry is None:
            return None
        since, error = json.loads(entry)
        return float(since), str(error)

    def meaning(self, doubt: Doubt, accounts: Accounts) -> Meaning:
        return refusals.weigh(self.failures.get(doubt, ()), self._failures_of_others(doubt, accounts))

    def _failures_of_others(self, doubt: Doubt, accounts: Accounts) -> list[tuple[Failure, ...]]:
        """Return the failures of the account's other judges."""
        start, judge = doubt
        others = (other for other, account in accounts.items() if other != judge and account == accounts.get(judge))
        return [self.failures[start, other] for other in others if (start, other) in self.failures]

    def is_held_back(self, doubt: Doubt, accounts: Accounts) -> bool:
        """Return whether calls are held back until it is known what the judge's last failure means."""
        failures = self.failures.get(doubt)
        if not failures or self.lifted.get(doubt) == failures[-1]:
            return False
        if self.meaning(doubt, accounts) is not Meaning.TRIAL:
            return False
        if self._calls_out(doubt, accounts) or time.monotonic() - self.progress_at < STALL_S:
            return True
        self.lifted[doubt] = failures[-1]
        self._notify()
        return False

    def _calls_out(self, doubt: Doubt, accounts: Accounts) -> int:
        start, judge = doubt
        return sum(
            self.out[start, judge_id] for judge_id, account in accounts.items() if account == accounts.get(judge)
        )

    def holds(self, doubt: Doubt, document: int, accounts: Accounts, *, mine: int = 0) -> bool:
        """Return whether a call of the judge about the document must wait; `mine`: 1 if `begin` has counted the call.

        1. A refusal is arriving: all calls of the start wait until it is read.
        2. The judge is on trial: one call of its account may be sent, about a document that was not refused.
        3. Another judge is on trial: all calls wait.
        4. The judge has given no usable answer yet: no more calls than would show that it gives none.
        5. Some judge in use has given no usable answer yet: no more than FIRST calls in all.
        """
        start, _ = doubt
        if self.begun[start]:
            return True
        trials = [key for key in self.failures if key[0] == start and self.is_held_back(key, accounts)]
        if doubt in trials:
            failures_of_account = (self.failures[doubt], *self._failures_of_others(doubt, accounts))
            refused_documents = set[int]().union(*map(refusals.refused_documents, failures_of_account))
            return document in refused_documents or self._calls_out(doubt, accounts) > mine
        if trials:
            return True
        count = len(self.failures.get(doubt, ()))
        is_unproven = doubt not in self.proven or count >= refusals.UNUSABLE // 2
        if is_unproven and self.out[doubt] - mine >= max(1, refusals.UNUSABLE - count):
            return True
        doubts = [(start, judge) for judge in accounts]
        if all(key in self.proven or key not in self.out for key in doubts):
            return False
        return sum(self.out[key] for key in doubts if key in self.out) - mine >= FIRST

    def begin(self, doubt: Doubt) -> None:
        """Count a call of the judge that may be sent."""
        self.out[doubt] += 1
        self.progress_at = time.monotonic()

    def end(self, doubt: Doubt) -> None:
        """Note that a call has ended, or was not sent."""
        self.out[doubt] -= 1
        self.progress_at = time.monotonic()
        if self.failures or doubt not in self.proven:
            self._notify()

    def _notify(self) -> None:
        self.progress_at = time.monotonic()
        self.changed.set()
        self.changed.clear()

    async def wait(self, seconds: float) -> None:
        """Wait until something has changed, for `seconds` at most."""
        try:
            async with asyncio.timeout(seconds):
                await self.changed.wait()
        except TimeoutError:
            return


def _field(doubt: Doubt) -> str:
    return f"{doubt[0]}/{doubt[1]}"


def _doubt(name: bytes) -> Doubt:
    start, _, judge = name.decode().rpartition("/")
    return start, int(judge)


def _failures(value: bytes | str) -> tuple[Failure, ...]:
    records: list[dict[str, Any]] = json.loads(value)
    return tuple(Failure(**{**fields, "document": int(fields["document"])}) for fields in records)
