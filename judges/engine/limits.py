"""Limits of an account, shared by all workers through Redis.

Calls that wait for one account are granted together, in one run of `limits.lua` on Redis' time.
While Redis is away everybody waits. At first few calls leave, and more with every answer. A 429
pauses its account alone; then one call leaves, then more, at the rate that was learned from what
the account answered between two refusals. 20 errors in a row open its circuit: then one call at a
time tries, and whoever has a pair to put back is turned away (docs/adr/0047).
"""

import asyncio
import json
import logging
import math
import os
import socket
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from django.conf import settings
from redis.asyncio import Redis
from redis.exceptions import RedisError

from judges.engine.trials import Trials
from judges.presets.own_servers import is_own_server
from judges.rates import Rate
from store.nodes import node_id

SCRIPT = (Path(__file__).parent / "limits.lua").read_text()
# Permits asked for in one exchange with Redis.
GRANTS = 64
FIRST = 4  # Calls that are out to an account that has answered none yet: its key may be dead.
# Seconds after which Redis forgets a process that says nothing, and frees the calls it had out.
LEASE_S = 15.0
# Calls that begin within a few milliseconds share one exchange.
GATHER_S = 0.004
CLOSE_S = 1.0
# A key that was not accepted is not tried again for so long: whatever waits for the account is turned away at once.
DENIED_S = 5.0
# The first wait of an open circuit, in milliseconds; the script doubles it.
CIRCUIT_MS = 2000
GIVE_UP_AFTER = 6  # How often the circuit opens before who cannot put a pair back is turned away: about two minutes.
LONGEST_PAUSE_S = 120.0  # The same for a longer wait that the account asks for.
REFUSALS = 8  # Refusals (429) in a row after which the same happens: the waits between them add up to two minutes, too.
SIT_OUT_S = 5.0  # A wait for an account that is longer ends a campaign's turn: others need the worker.
KEEP_MS = 600_000  # What Redis knows of an account is forgotten after so long without a call.
SERVED = 0.75  # The share of a call's time limit that the calls before it may take.
MEASURED = 8  # Answers from whose times it is told how many calls a server of our own takes at once.
# Starts of campaigns that are just being paused: faster than PostgreSQL is looked at.
REFUSED, REFUSED_MS = "refused", 3000
# Errors in a row that one question can cause: its tries. More speak of the account.
ONE_QUESTION = 4

logger = logging.getLogger(__name__)


def limit_keys(prefix: str, account: tuple[str, str, str]) -> list[str]:
    """Return names in Redis of an account's state, processes, held calls and window."""
    name = sha256("\0".join(account).encode()).hexdigest()[:20]
    # The braces are Redis Cluster's hash tag: the four keys of an account must lie on one node for the script.
    return [f"{prefix}:limit:{{{name}}}:{part}" for part in ("state", "processes", "held", "window")]


def process_name() -> str:
    """Return this process's name as a holder: its machine @ the process; a random end tells it from an earlier one."""
    return f"{node_id()[:12]}@{socket.gethostname()[:26]}:{os.getpid()}:{os.urandom(4).hex()}"


class CircuitOpen(Exception):
    """The account answers with nothing but errors."""


class Denied(CircuitOpen):
    """The account refused us a moment ago."""


class Abandoned(Exception):
    """Waiting for a permit was given up: the caller must not send any more."""


@dataclass(frozen=True, slots=True)
class Limit:
    """Limits of an account; 0: none. The smallest number of its judges holds."""

    concurrency: int = 0
    requests_per_minute: int = 0
    tokens_per_minute: int = 0


@dataclass(frozen=True, slots=True)
class Permit:
    """Permission to send one call. `tokens` were reserved in `bucket` of the window."""

    bucket: int
    tokens: int
    tries: bool = False  # It tries an open circuit.
    epoch: int = 0  # How often the account had refused calls (429) when it was granted.
    out: int = 1  # Calls that were out then, this one among them.


@dataclass(slots=True)
class News:
    """What Redis has not been told yet. Truths are 0 or 1, as the script compares them."""

    ended: int = 0  # Calls of the present epoch, answered or not.
    good: int = 0  # Of them, those that were answered.
    succeeded: int = 0  # The account said something.
    errors: int = 0  # In a row since.
    refused: int = 0  # It refused a call for now (429).
    pause: int = 0  # Milliseconds that it asks for.
    hint: int = 0  # Requests a minute, by the refusal's headers.
    hold: int = 0  # Milliseconds until it has room again, by an answer's headers.
    left: int = -1  # Requests that it takes now, by an answer's headers; -1: unknown.
    late: int = 0  # Milliseconds after which a call had found no answer.
    said: str = ""
    back: list[tuple[int, int]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return self != NOTHING

    def merge(self, later: "News") -> "News":
        """Return these, which could not be told, with what was noted since."""
        merged = News(
            **{name: max(value, getattr(later, name)) for name, value in asdict(self).items() if name[0] != "b"}
        )
        merged.back = self.back + later.back
        merged.ended, merged.good = self.ended + later.ended, self.good + later.good
        merged.errors = later.errors if later.succeeded else self.errors + later.errors
        merged.said = later.said or self.said
        return merged


NOTHING = News()


class Waiter(asyncio.Future[Permit]):
    """A call that waits for its permit, of at most `tokens`; it has `limit_s` seconds."""

    def __init__(self, tokens: int, stopped: Callable[[], bool], patience: int, limit_s: float = 0.0) -> None:
        super().__init__()
        self.tokens, self.stopped, self.limit_s = tokens, stopped, limit_s
        self.patience = patience  # How often the circuit may open meanwhile; 0: an open circuit turns the call away.
        self.opened: int | None = None  # How often the circuit had opened when the call first met it.


class AccountLimits:
    """Limits of one account in one worker process; they run on the process's loop."""

    def __init__(
        self,
        redis: Redis,
        prefix: str,
        account: tuple[str, str, str],
        process: str,
        refused: set[str],
        trials: Trials | None = None,
    ) -> None:
        self.keys = limit_keys(prefix, account)
        self.is_local = is_own_server(*account[:2])
        self.name = " ".join(part for part in account if part)
        self.redis, self.script = redis, redis.register_script(SCRIPT)
        self.refusals, self.refused = f"{prefix}:{REFUSED}", refused
        self.trials = trials or Trials(redis, prefix)
        self.taken = 0.0
        self.process = process
        self.limit = Limit()
        self.waiters: deque[Waiter] = deque()
        self.held = 0
        self.changed = asyncio.Event()
        self.news = News()
        self.epoch = 0  # Calls that were granted before the last refusal say nothing about what came after it.
        self.each: deque[float] = deque(maxlen=MEASURED)  # Seconds of last answers, by the calls that were out.
        self.limited_in_a_row = 0  # Refusals (429), of all processes.
        self.answers = 0  # How many calls it has answered to this process.
        self.paused_until = 0.0
        self.paused_clock = 0  # The same by the calendar, for people.
        self.last_error = ""
        self.denied_until = 0.0
        self.accepted = False  # It has answered this process, and has not refused its key since.
        self.in_a_row = 0  # Errors since the account last answered this process.
        self.opened = 0  # How often its circuit opened since it last answered anybody; 0: it is closed.
        self.open_until = 0.0
        self.is_tried = False  # A call that tries an open circuit is out, of whatever process.
        self.tries = False  # The one call that tries an open circuit is ours.
        self.looking = False
        self.task: asyncio.Task[None] | None = None

    def apply_limit(self, limit: Limit) -> None:
        """Take the account's present limit, and forget earlier refusals."""
        self.limit, self.denied_until, self.taken = limit, 0.0, time.monotonic()

    @property
    def is_open(self) -> bool:
        """True if calls are held back: the circuit is open, another process tries."""
        return self.opened > 0 and not self.tries and time.monotonic() < self.open_until

    @property
    def pause_left(self) -> float:
        """Seconds until calls leave again after a refusal (429); 0.0: they do."""
        return max(0.0, self.paused_until - time.monotonic())

    @property
    def seconds_left(self) -> float:
        """Seconds until the account is asked again, as far as anybody knows; 0.0: now."""
        until = max(self.paused_until, self.open_until if self.opened and not self.tries else 0.0)
        return max(0.0, until - time.monotonic())

    @property
    def problem(self) -> str:
        """What is wrong with an account that is not asked for a while, and until when."""
        if self.paused_until >= self.open_until:
            until = datetime.fromtimestamp(self.paused_clock, UTC)
            return f"{self.name} asks to wait until {until:%Y-%m-%d %H:%M:%S} UTC: {self.last_error}"
        return f"{self.name} does not answer: {self.last_error}"

    @property
    def is_well(self) -> bool:
        """True if the account works: no open circuit, and no more errors in a row than a single question can cause."""
        return self.opened == 0 and self.in_a_row <= ONE_QUESTION

    async def acquire(
        self, tokens: int, stopped: Callable[[], bool], patience: int = GIVE_UP_AFTER, limit_s: float = 0.0
    ) -> Permit:
        """Wait for one call of at most `tokens`. Raises CircuitOpen, Denied, and Abandoned once `stopped` says so."""
        # Without asking Redis: a refused key is refused for every call, so asking costs time.
        if time.monotonic() < self.denied_until:
            raise Denied(self.last_error)
        waiter = Waiter(tokens, stopped, patience, limit_s)
        self.waiters.append(waiter)
        self._wake()
        try:
            return await waiter
        except asyncio.CancelledError:
            # The permit may have come in the same pass of the loop: nobody else would give it back.
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self.release(waiter.result())
            raise

    def release(self, permit: Permit, used: int | None = None) -> None:
        """Note that the call has ended; unused tokens go back (None: it never left)."""
        self.held -= 1
        self.news.ended += permit.epoch == self.epoch
        self.tries = self.tries and not permit.tries
        unused = permit.tokens - (used or 0)
        if unused > 0 and self.limit.tokens_per_minute:
            self.news.back.append((permit.bucket, min(unused, self.limit.tokens_per_minute)))
        self._wake()

    def responded(self, permit: Permit | None = None, seconds: float = 0.0, rate: Rate | None = None) -> None:
        """Note that the account said something, be it no answer: the run of errors ends."""
        # More may leave at once for each answer that came after the last refusal.
        self.news.succeeded, self.news.errors, self.in_a_row = 1, 0, 0
        self.opened, self.open_until = 0, 0.0
        self.answers += 1
        if permit is None:
            return
        self.news.good += permit.epoch == self.epoch
        if self.is_local and seconds > 0:
            self.each.append(seconds / max(1, permit.out))
        if rate is not None:
            self.news.left = rate.left if self.news.left < 0 else min(self.news.left, rate.left)
            self.news.hold = max(self.news.hold, int(rate.hold * 1000))

    def failed(self, error: str) -> None:
        """Count a call that brought no answer."""
        # Counted for Redis and, apart from it, for this process: `is_well` asks what one question could have caused.
        self.news.errors += 1
        self.in_a_row += 1
        self.last_error = self.news.said = error

    def timed_out(self, permit: Permit, limit_s: float) -> str:
        """Let fewer calls leave after one that found no answer in its time; what to set so that it would have."""
        self.news.late = int(limit_s * 1000)
        if permit.out == 1:
            return f"set timeout_s = {_round_up(5 * limit_s)}"
        if self.each:  # others were answered: this one waited for those before it
            slow = sorted(self.each)[len(self.each) // 2]
            fits = max(1, int(SERVED * limit_s / slow))
            if fits < permit.out:
                needed = _round_up(slow * permit.out / SERVED)
                return f"set max_concurrency = {fits}, or timeout_s = {needed}: {permit.out} calls were out at once"
        needed = _round_up(limit_s * permit.out if self.is_local else 5 * limit_s)
        few = 1 if self.is_local else max(1, permit.out // 4)
        return f"set max_concurrency = {few} and timeout_s = {needed}: {permit.out} calls were out at once"

    def fits(self, limit_s: float) -> int:
        """Return how many calls our own server answers in time; 0: unknown."""
        if not self.each or limit_s <= 0:
            return 0
        return max(1, int(SERVED * limit_s / sorted(self.each)[len(self.each) // 2]))

    def deny(self, error: str, sent: float) -> None:
        """Turn away whoever waits for an account that refuses our key, as of `sent`."""
        # The refused call left before the account's settings were taken anew.
        if sent < self.taken:
            return  # somebody may have mended it since
        self.denied_until, self.last_error, self.accepted = time.monotonic() + DENIED_S, error, False
        while self.waiters:
            waiter = self.waiters.popleft()
            if not waiter.done():
                waiter.set_exception(Denied(error))

    def look(self) -> None:
        """Ask Redis how the circuit is: whoever tries it may be another process."""
        self.looking = True
        self._wake()

    def limited(self, error: str, seconds: float | None, permit: Permit | None = None, hint: int = 0) -> None:
        """Pause all calls to this account, of every worker: it has refused one for now (429).

        `seconds`: as long as it asks for; None: it says nothing. `hint`: requests a minute, as its headers have them.
        """
        # One refusal is enough: those of calls that left before it was known say nothing more.
        if permit is None or permit.epoch == self.epoch:
            self.news.refused, self.news.hint = 1, hint
        # It is there: what it does not want is more of this.
        self.news.succeeded, self.news.errors, self.in_a_row = 1, 0, 0
        self.last_error = self.news.said = error
        # A millisecond more, since ours are cut off.
        self.news.pause = max(self.news.pause, int(seconds * 1000) + 1 if seconds else 0)
        self._wake()

    def pause(self, seconds: float) -> None:
        """Pause all workers' calls to this account: no room for so many seconds."""
        self.news.pause = max(self.news.pause, int(seconds * 1000) + 1)
        self._wake()

    def drop_cancelled(self) -> None:
        """Turn away waiters that must not send, however long they would wait."""
        for waiter in [one for one in self.waiters if one.stopped()]:
            self.waiters.remove(waiter)
            if not waiter.done():
                waiter.set_exception(Abandoned())

    def _wake(self) -> None:
        self.changed.set()
        if self.task is None or self.task.done():
            # One task for an account serves all its waiters; it ends by itself when nothing is left
            # to tell. What the first of them bound to log lines is not its own.
            self.task = asyncio.create_task(self._serve(), context=Context())

    async def _serve(self) -> None:
        """Run `limits.lua` as long as somebody waits for the account or holds something of it."""
        while self.waiters or self.held or self.news or self.looking:
            self.changed.clear()
            await asyncio.sleep(GATHER_S)
            try:
                wait = await self._exchange()
            except (RedisError, OSError) as error:
                logger.warning("Redis is away, calls to %s wait: %s", self.name, error)
                # Nobody sends without a permit: Redis' absence stops calls and breaks no limit.
                await asyncio.sleep(0.5)
                continue
            if not (self.waiters or self.held or self.news):
                return
            with suppress(TimeoutError):
                # A third of the lease, so that Redis hears of this process even without changes.
                async with asyncio.timeout(min(wait, LEASE_S / 3)):
                    await self.changed.wait()

    async def _exchange(self) -> float:
        """Tell Redis what ended, ask for what waits; seconds until asking again makes sense."""
        # Waiters that have ended; those further back are passed over below.
        while self.waiters and self.waiters[0].done():
            self.waiters.popleft()
        room = GRANTS if self.accepted else max(0, FIRST - self.held)
        asked = [waiter for waiter in self.waiters if not waiter.done()][:room]
        # Emptied before the exchange, put back where it fails: later notes are told next time.
        news, self.news, self.looking = self.news, News(), False
        limit = self.limit
        told = asdict(news) | {
            "process": self.process,
            "lease": int(LEASE_S * 1000),
            "held": self.held,
            "most": limit.concurrency,
            "per_minute": limit.requests_per_minute,
            "tokens_per_minute": limit.tokens_per_minute,
            "fits": self.fits(min((waiter.limit_s for waiter in asked), default=0.0)),
            "first": 1 if self.is_local else FIRST,
            "epoch": self.epoch,
            "backoff": settings.RETRY_SECONDS * 1000,
            "circuit": CIRCUIT_MS,
            "keep_ms": KEEP_MS,
            "asked": [waiter.tokens for waiter in asked],
        }
        try:
            both, began = self.redis.pipeline(transaction=False), time.monotonic()
            await self.script(keys=self.keys, args=[json.dumps(told)], client=both)
            both.smembers(self.refusals)
            both.hgetall(self.trials.key)
            answer, refused, failures = await both.execute()
        except (RedisError, OSError):
            self.news = news.merge(self.news)
            raise
        granted, wait, bucket, opened, open_ms, pause_ms, epoch, out, self.limited_in_a_row, trying, said = answer
        self.refused |= {one.decode() for one in refused}
        self.trials.merge(failures, began)
        now = time.monotonic()
        if epoch != self.epoch:  # what was noted meanwhile is of calls that left before the refusal
            self.news.ended = self.news.good = self.news.refused = 0
        self.epoch, self.paused_until = epoch, now + pause_ms / 1000
        if abs(time.time() + pause_ms / 1000 - self.paused_clock) > 2:  # Else the same moment, measured once more.
            self.paused_clock = math.ceil(time.time() + pause_ms / 1000)
        self.last_error = said.decode() or self.last_error
        if not self.news.succeeded:  # else an answer came meanwhile, which Redis is told next
            self.opened, self.open_until, self.is_tried = opened, now + open_ms / 1000, bool(opened and trying)
        for place, waiter in enumerate(asked[:granted], 1):  # The first ones asked, in their order.
            if waiter in self.waiters:
                self.waiters.remove(waiter)
            self.held += 1
            permit = Permit(bucket, waiter.tokens, opened > 0, epoch, out - granted + place)
            self.tries = self.tries or permit.tries
            if waiter.done():  # cancelled while Redis answered
                self.release(permit)
            else:
                waiter.set_result(permit)
        self._turn_away(asked[granted:], opened)
        if len(asked) == granted:
            return 0.0 if self.waiters and (self.accepted or self.held < FIRST) else LEASE_S
        return float(wait) / 1000

    def _turn_away(self, waiting: list[Waiter], opened: int) -> None:
        for waiter in waiting:
            is_long = self.limited_in_a_row >= REFUSALS or self.pause_left > LONGEST_PAUSE_S
            problem = self.problem if waiter.patience and is_long else ""
            if not problem:
                waiter.opened = (waiter.opened or opened) if opened else None
                if waiter.opened is not None and opened - waiter.opened >= waiter.patience:
                    problem = f"{self.name} does not answer: {self.last_error}"
            if problem and not waiter.done() and waiter in self.waiters:
                self.waiters.remove(waiter)
                waiter.set_exception(CircuitOpen(problem))


def _round_up(seconds: float) -> int:
    return max(30, 30 * -(-int(seconds) // 30))


class RateLimits:
    """All accounts of one worker process."""

    def __init__(self, open_redis: Callable[[], Redis], prefix: str, process: str) -> None:
        self.redis = open_redis()
        self.prefix = prefix
        self.process = process
        self.accounts: dict[tuple[str, str, str], AccountLimits] = {}
        # Starts of campaigns (`Plan.start`) of which an account refused a call, in any process.
        self.refused: set[str] = set()
        self.trials = Trials(self.redis, prefix)
        self.telling: set[asyncio.Task[None]] = set()

    def account(self, name: tuple[str, str, str]) -> AccountLimits:
        if name not in self.accounts:
            self.accounts[name] = AccountLimits(self.redis, self.prefix, name, self.process, self.refused, self.trials)
        return self.accounts[name]

    def refuse(self, start: str) -> None:
        """Tell all processes that an account refused a call of this start of a campaign: none sends another one."""

        async def tell_all() -> None:
            key = f"{self.prefix}:{REFUSED}"
            try:
                await self.redis.sadd(key, start)
                await self.redis.pexpire(key, REFUSED_MS)
            except (RedisError, OSError) as error:
                logger.warning("Redis is away, the others find out by themselves: %s", error)

        if start not in self.refused:
            # A set keeps the task alive: asyncio itself holds only weak references to tasks.
            self.refused.add(start)
            task = asyncio.create_task(tell_all(), context=Context())
            self.telling.add(task)
            task.add_done_callback(self.telling.discard)

    def drop_cancelled(self) -> None:
        for account in self.accounts.values():
            account.drop_cancelled()

    async def close(self) -> None:
        """Tell Redis what ended, and release the connection."""
        telling = [account.task for account in self.accounts.values() if account.task is not None]
        if telling:
            _, late = await asyncio.wait(telling, timeout=CLOSE_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*telling, return_exceptions=True)
        await self.redis.aclose()
