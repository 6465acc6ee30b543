"""Limits of an account, shared by all workers through Redis.

Calls that wait for one account are granted together, in one run of `limits.lua` on Redis' time. While Redis is away
everybody waits. A 429 pauses its account alone; 20 errors in a row open its circuit: then one call at a time tries, and
whoever has a pair to put back is turned away (docs/adr/0047).
"""

import asyncio
import logging
import os
import socket
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from store.nodes import node_id

SCRIPT = (Path(__file__).parent / "limits.lua").read_text()
# Permits asked for in one exchange with Redis.
GRANTS = 64
FIRST = 4  # Calls that a process has out to an account that has answered none yet: its key may be dead.
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
# Starts of campaigns that are just being paused: faster than PostgreSQL is looked at.
REFUSED, REFUSED_MS = "refused", 3000
# Errors in a row that one question alone can cause: it is tried so often. More of them speak of the account.
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


class Waiter(asyncio.Future[Permit]):
    """A call that waits for its permit, of at most `tokens`."""

    def __init__(self, tokens: int, stopped: Callable[[], bool], patience: int) -> None:
        super().__init__()
        self.tokens, self.stopped = tokens, stopped
        self.patience = patience  # How often the circuit may open meanwhile; 0: an open circuit turns the call away.
        self.opened: int | None = None  # How often the circuit had opened when the call first met it.


class AccountLimits:
    """Limits of one account in one worker process; they run on the process's loop."""

    def __init__(
        self, redis: Redis, prefix: str, account: tuple[str, str, str], process: str, refused: set[str]
    ) -> None:
        self.keys = limit_keys(prefix, account)
        self.name = " ".join(part for part in account if part)
        self.redis, self.script = redis, redis.register_script(SCRIPT)
        self.refusals, self.refused = f"{prefix}:{REFUSED}", refused
        self.taken = 0.0
        self.process = process
        self.limit = Limit()
        self.waiters: deque[Waiter] = deque()
        self.held = 0
        self.changed = asyncio.Event()
        self.ended = 0
        self.errors = 0
        self.succeeded = False
        self.pause_ms = 0
        self.back: list[tuple[int, int]] = []
        self.last_error = ""
        self.denied_until = 0.0
        self.accepted = False  # It has answered this process, and has not refused its key since.
        self.in_a_row = 0  # Errors since the account last answered this process.
        self.opened = 0  # How often its circuit opened since it last answered anybody; 0: it is closed.
        self.open_until = 0.0
        self.tries = False  # The one call that tries an open circuit is ours.
        self.looking = False
        self.task: asyncio.Task[None] | None = None

    def apply_limit(self, limit: Limit) -> None:
        """Take the account's present limit, and forget earlier refusals, which it may have mended."""
        self.limit, self.denied_until, self.taken = limit, 0.0, time.monotonic()

    @property
    def is_open(self) -> bool:
        """True if calls are held back: the circuit is open, and it is not this process's turn to try again."""
        return self.opened > 0 and not self.tries and time.monotonic() < self.open_until

    @property
    def is_well(self) -> bool:
        """True if the account works: no open circuit, and no more errors in a row than a single question can cause."""
        return self.opened == 0 and self.in_a_row <= ONE_QUESTION

    async def acquire(self, tokens: int, stopped: Callable[[], bool], patience: int = GIVE_UP_AFTER) -> Permit:
        """Wait for one call of at most `tokens`. Raises CircuitOpen, Denied, and Abandoned once `stopped` says so."""
        # Without asking Redis: a refused key is refused for every call, and asking would only cost time.
        if time.monotonic() < self.denied_until:
            raise Denied(self.last_error)
        waiter = Waiter(tokens, stopped, patience)
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
        """Note that the call has ended; tokens that it did not use are given back (None: it never left)."""
        self.held -= 1
        self.ended += 1
        self.tries = self.tries and not permit.tries
        unused = permit.tokens - (used or 0)
        if unused > 0 and self.limit.tokens_per_minute:
            self.back.append((permit.bucket, min(unused, self.limit.tokens_per_minute)))
        self._wake()

    def responded(self) -> None:
        """Note that the account said something, be it no answer: the run of errors ends."""
        self.succeeded, self.errors, self.in_a_row = True, 0, 0
        self.opened, self.open_until = 0, 0.0

    def failed(self, error: str) -> None:
        """Count a call that brought no answer."""
        # Counted for Redis and, apart from it, for this process: `is_well` asks what one question could have caused.
        self.errors += 1
        self.in_a_row += 1
        self.last_error = error

    def deny(self, error: str, sent: float) -> None:
        """Turn away whoever waits for an account that does not accept our key. `sent`: when it was asked."""
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

    def pause(self, seconds: float) -> None:
        """Pause all calls to this account, of every worker, for some seconds."""
        self.pause_ms = max(self.pause_ms, int(seconds * 1000) + 1)
        self._wake()

    def drop_cancelled(self) -> None:
        """Turn away waiters that must not send any more, however long the account would have them wait."""
        for waiter in [one for one in self.waiters if one.stopped()]:
            self.waiters.remove(waiter)
            if not waiter.done():
                waiter.set_exception(Abandoned())

    def _wake(self) -> None:
        self.changed.set()
        if self.task is None or self.task.done():
            # One task for an account serves all its waiters; it ends by itself when nothing is left to tell.
            # What the first of them bound to log lines is not its own.
            self.task = asyncio.create_task(self._serve(), context=Context())

    async def _serve(self) -> None:
        """Run `limits.lua` as long as somebody waits for the account or holds something of it."""
        while self.waiters or self.held or self.ended or self.pause_ms or self.back or self.looking:
            self.changed.clear()
            await asyncio.sleep(GATHER_S)
            try:
                wait = await self._exchange()
            except (RedisError, OSError) as error:
                logger.warning("Redis is away, calls to %s wait: %s", self.name, error)
                # Nobody sends without a permit, so Redis' absence stops calls instead of breaking limits.
                await asyncio.sleep(0.5)
                continue
            if not self.waiters and not (self.held or self.ended or self.pause_ms or self.back):
                return
            with suppress(TimeoutError):
                # A third of the lease, so that Redis hears of this process in time even when nothing changes.
                async with asyncio.timeout(min(wait, LEASE_S / 3)):
                    await self.changed.wait()

    async def _exchange(self) -> float:
        """Tell Redis what ended, ask for what waits; seconds until asking again makes sense."""
        # Waiters that have ended; those further back are passed over below.
        while self.waiters and self.waiters[0].done():
            self.waiters.popleft()
        room = GRANTS if self.accepted else max(0, FIRST - self.held)
        asked = [waiter for waiter in self.waiters if not waiter.done()][:room]
        ended, errors, succeeded = self.ended, self.errors, self.succeeded
        pause, back = self.pause_ms, self.back
        # Emptied before the exchange and put back where it fails: what is noted meanwhile is told next time.
        self.ended = self.errors = self.pause_ms = 0
        self.succeeded, self.back, self.looking = False, [], False
        limit = self.limit
        arguments: list[Any] = [self.process, int(LEASE_S * 1000), limit.concurrency, limit.requests_per_minute]
        arguments += [limit.tokens_per_minute, ended, int(succeeded), errors, pause, CIRCUIT_MS, len(back)]
        arguments += [value for pair in back for value in pair]
        arguments += [waiter.tokens for waiter in asked]
        try:
            both = self.redis.pipeline(transaction=False)
            await self.script(keys=self.keys, args=arguments, client=both)
            both.smembers(self.refusals)
            (granted, wait, bucket, opened, _, open_ms), refused = await both.execute()
        except (RedisError, OSError):
            self.ended, self.errors, self.pause_ms = self.ended + ended, self.errors + errors, max(pause, self.pause_ms)
            self.succeeded, self.back = self.succeeded or succeeded, back + self.back
            raise
        self.refused |= {one.decode() for one in refused}
        if not self.succeeded:  # else an answer came meanwhile, which Redis is told next
            self.opened, self.open_until = opened, time.monotonic() + open_ms / 1000
        self._grant(asked, granted, bucket, tries=opened > 0)
        self._turn_away(asked[granted:], opened)
        if len(asked) == granted:
            return 0.0 if self.waiters and (self.accepted or self.held < FIRST) else LEASE_S
        return float(wait) / 1000

    # Permits are granted for the first ones asked, in their order.
    def _grant(self, asked: list[Waiter], granted: int, bucket: int, *, tries: bool) -> None:
        for waiter in asked[:granted]:
            if waiter in self.waiters:
                self.waiters.remove(waiter)
            self.held += 1
            permit = Permit(bucket, waiter.tokens, tries)
            self.tries = self.tries or tries
            if waiter.done():  # cancelled while Redis answered
                self.release(permit)
            else:
                waiter.set_result(permit)

    def _turn_away(self, waiting: list[Waiter], opened: int) -> None:
        for waiter in waiting:
            if not opened:
                waiter.opened = None
                continue
            if waiter.opened is None:
                waiter.opened = opened
            if opened - waiter.opened >= waiter.patience and not waiter.done() and waiter in self.waiters:
                self.waiters.remove(waiter)
                waiter.set_exception(CircuitOpen(f"{self.name} answers with errors only: {self.last_error}"))


class RateLimits:
    """All accounts of one worker process."""

    def __init__(self, open_redis: Callable[[], Redis], prefix: str, process: str) -> None:
        self.redis = open_redis()
        self.prefix = prefix
        self.process = process
        self.accounts: dict[tuple[str, str, str], AccountLimits] = {}
        # Starts of campaigns (`Plan.start`) of which an account refused a call, in whatever process.
        self.refused: set[str] = set()
        self.telling: set[asyncio.Task[None]] = set()

    def account(self, name: tuple[str, str, str]) -> AccountLimits:
        if name not in self.accounts:
            self.accounts[name] = AccountLimits(self.redis, self.prefix, name, self.process, self.refused)
        return self.accounts[name]

    def refuse(self, start: str) -> None:
        """Tell all processes that an account refused a call of this start of a campaign: none sends another one."""
        if start not in self.refused:
            # A set keeps the task alive: asyncio itself holds only weak references to tasks.
            self.refused.add(start)
            task = asyncio.create_task(self._tell_all(start), context=Context())
            self.telling.add(task)
            task.add_done_callback(self.telling.discard)

    async def _tell_all(self, start: str) -> None:
        key = f"{self.prefix}:{REFUSED}"
        try:
            await self.redis.sadd(key, start)
            await self.redis.pexpire(key, REFUSED_MS)
        except (RedisError, OSError) as error:
            logger.warning("Redis is away, the others find out by themselves: %s", error)

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
