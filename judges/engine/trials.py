"""Failures of judges since their last usable answer, shared by all workers, and the calls that are held back for them.

After a refusal that may be of the account nothing of the campaign leaves but one call at a time,
about another document: it shows whether the account answers (judges.domain.refusals decides). What
is known stands in Redis, beside the limits, and is read with every grant of permits.
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

# Seconds without a telling call after which a trial is given up; failures are kept.
STALL_S = 2.0
# Calls that a process has out of a campaign while a judge that was asked has not given it a usable
# answer yet: its account may be refused whatever it asks, and nothing else is bought until that is
# known.
FIRST = 24
DAY_MS = 86_400_000

APPEND = """
local known = redis.call('HGET', KEYS[1], ARGV[1])
local failures = known and cjson.decode(known) or {}
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
    """Failures of all campaigns' judges, and the calls of this process that are out meanwhile."""

    def __init__(self, redis: Redis, prefix: str) -> None:
        self.redis, self.key, self.failing = redis, f"{prefix}:failures", f"{prefix}:failing"
        self.append = redis.register_script(APPEND)
        self.failures: dict[Doubt, tuple[Failure, ...]] = {}
        self.written = 0.0  # When this process last changed them: what was read before is older.
        self.writing = 0
        self.proven: set[Doubt] = set()  # Judges that gave this process a usable answer.
        self.out: Counter[Doubt] = Counter()
        self.begun: Counter[str] = Counter()  # Refusals that begin to arrive, by start: nobody has read them yet.
        self.lifted: dict[Doubt, Failure] = {}  # The last failure of a trial that was given up.
        self.moved = 0.0  # When a trial last went on.
        self.changed = asyncio.Event()
        self.tasks: set[asyncio.Task[None]] = set()
        # When the last answered call of each account had left, here: seconds since 1970.
        self.answers: dict[Account, float] = {}

    def merge(self, read: Mapping[bytes, bytes], asked: float) -> None:
        """Take over what Redis had when it was `asked`, by the monotonic clock."""
        if self.writing or asked < self.written or not (read or self.failures):
            return
        found = {_doubt(name): _failures(value) for name, value in read.items()}
        if found != self.failures:
            self.failures = found
            self._tell()

    async def failed(self, doubt: Doubt, failure: Failure) -> None:
        """Add a failure, for all workers."""
        self.failures[doubt] = (*self.failures.get(doubt, ()), failure)[-refusals.KEPT :]
        self._tell()
        arguments: list[str | int] = [_field(doubt), json.dumps(asdict(failure)), refusals.KEPT, DAY_MS]
        self.writing += 1
        try:
            known = await self.append(keys=[self.key], args=arguments)
            self.failures[doubt] = _failures(known)
        except (RedisError, OSError) as error:
            logger.warning("Redis is away, a refusal is known to this worker alone: %s", error)
        finally:
            self.writing, self.written = self.writing - 1, time.monotonic()
        self._tell()

    def answered(self, doubt: Doubt, sent: float) -> None:
        """Note a usable answer to a call of `sent`: it may end a row of failures."""
        if doubt not in self.proven:
            self.proven.add(doubt)
            self._tell()
        if doubt in self.failures and refusals.is_cleared(self.failures[doubt], sent):
            del self.failures[doubt]
            self._tell()
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
            self.writing, self.written = self.writing - 1, time.monotonic()

    async def forget_start(self, start: str, *, earlier: bool = False) -> None:
        """Forget the failures of an ended start, or of the campaign's earlier ones."""
        campaign = start.partition(":")[0]
        for doubt in list(self.failures):
            if (doubt[0].partition(":")[0] == campaign and doubt[0] != start) if earlier else doubt[0] == start:
                self.failures.pop(doubt, None)
                await self._forget(doubt)

    async def note_failing(self, campaign: int, question: str, since: float, error: str) -> None:
        """Note, for all workers, since when a question fails whose tries are used up, and why."""
        key = f"{self.failing}:{campaign}"  # Forgotten with retry-failed (judges.engine.notifications).
        try:
            await self.redis.hsetnx(key, question, json.dumps([since, error]))
            await self.redis.pexpire(key, DAY_MS)
        except (RedisError, OSError) as found:
            logger.warning("Redis is away, a failing question is not noted: %s", found)

    async def find_failing(self, campaign: int, question: str) -> tuple[float, str] | None:
        """Since when the question fails, and why; None where its tries were not used up yet."""
        try:
            found = await self.redis.hget(f"{self.failing}:{campaign}", question)
        except (RedisError, OSError):
            return None
        if found is None:
            return None
        since, error = json.loads(found)
        return float(since), str(error)

    def meaning(self, doubt: Doubt, accounts: Accounts) -> Meaning:
        return refusals.weigh(self.failures.get(doubt, ()), self._beside(doubt, accounts))

    def _beside(self, doubt: Doubt, accounts: Accounts) -> list[tuple[Failure, ...]]:
        """Return failures of the other judges of the account."""
        start, judge = doubt
        others = (one for one, account in accounts.items() if one != judge and account == accounts.get(judge))
        return [self.failures[start, one] for one in others if (start, one) in self.failures]

    def is_held_back(self, doubt: Doubt, accounts: Accounts) -> bool:
        """Whether calls are held back until it is known what the judge's last failure means."""
        failures = self.failures.get(doubt)
        if not failures or self.lifted.get(doubt) == failures[-1]:
            return False
        if self.meaning(doubt, accounts) is not Meaning.TRIAL:
            return False
        if self._calls_out(doubt, accounts) or time.monotonic() - self.moved < STALL_S:
            return True
        self.lifted[doubt] = failures[-1]
        self._tell()
        return False

    def _calls_out(self, doubt: Doubt, accounts: Accounts) -> int:
        start, judge = doubt
        return sum(self.out[start, one] for one, account in accounts.items() if account == accounts.get(judge))

    def holds(self, doubt: Doubt, document: int, accounts: Accounts, *, mine: int = 0) -> bool:
        """Return whether a call of the judge about the document must wait; `mine`: 1 if it was let through before."""
        start, _ = doubt
        if self.begun[start]:
            return True
        trials = [one for one in self.failures if one[0] == start and self.is_held_back(one, accounts)]
        if doubt in trials:
            # The trial itself: one call of the account, about a document that was not refused.
            alike = (self.failures[doubt], *self._beside(doubt, accounts))
            shown = set[int]().union(*(refusals.refused_documents(each) for each in alike))
            return document in shown or self._calls_out(doubt, accounts) > mine
        if trials:
            return True
        # A judge that has given no usable answer yet has no more calls out than would show that it gives none.
        count = len(self.failures.get(doubt, ()))
        unsure = doubt not in self.proven or count >= refusals.UNUSABLE // 2
        if unsure and self.out[doubt] - mine >= max(1, refusals.UNUSABLE - count):
            return True
        judges = [(start, judge) for judge in accounts]
        if all(one in self.proven or one not in self.out for one in judges):
            return False
        return sum(self.out[one] for one in judges if one in self.out) - mine >= FIRST

    def begin(self, doubt: Doubt) -> None:
        """Note that a call is let through: from now on its judge is one that was asked."""
        self.out[doubt] += 1
        self.moved = time.monotonic()

    def end(self, doubt: Doubt) -> None:
        """Note that it has ended, or was not sent."""
        self.out[doubt] -= 1
        self.moved = time.monotonic()
        if self.failures or doubt not in self.proven:
            self._tell()

    def _tell(self) -> None:
        self.moved = time.monotonic()
        self.changed.set()
        self.changed.clear()

    async def wait(self, seconds: float) -> None:
        """Wait until something has changed, but no longer than so many seconds."""
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
    read: list[dict[str, Any]] = json.loads(value)
    return tuple(Failure(**{**fields, "document": int(fields["document"])}) for fields in read)
