"""Rate limits of an account, shared by all workers through Redis.

Calls that wait for one account are granted together, in one run of `limits.lua` on Redis' time.
While Redis is away all calls wait. At first few calls are sent, and more with every answer. A 429
pauses its account alone; then one call is sent, then more, at the rate learned from the answers
between two refusals. 20 errors in a row open the account's circuit: then one call at a time tries
it, and calls whose pair can be put back are turned away (docs/adr/0047).
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
from judges.presets.own_servers import advised_timeout, is_own_server
from judges.rates import Rate
from store.nodes import node_id

SCRIPT = (Path(__file__).parent / "limits.lua").read_text()
# Permits asked for in one exchange with Redis.
GRANTS = 64
FIRST = 4  # Calls in flight to an account that has answered none yet: its key may be dead.
# Seconds after which Redis forgets a silent process, and frees its calls in flight.
LEASE_S = 15.0
# Calls that begin within a few milliseconds share one exchange.
GATHER_S = 0.004
CLOSE_S = 1.0
# Seconds for which a rejected key is not tried again: calls that wait for the account are turned away at once.
DENIED_S = 5.0
# The first wait of an open circuit, in milliseconds; the script doubles it, up to eight seconds.
CIRCUIT_MS = 2000
GIVE_UP_AFTER = 17  # Openings of the circuit after which a call that cannot put its pair back fails: about two minutes.
LONGEST_PAUSE_S = 120.0  # The same for a wait that the account asks for.
REFUSALS = 8  # The same for refusals (429) in a row: the waits between them add up to two minutes, too.
SIT_OUT_S = 5.0  # A longer wait for an account ends a campaign's time slice: others need the worker.
KEEP_MS = 600_000  # Redis forgets an account after this time without a call.
SERVED = 0.75  # The share of a call's time limit that the calls before it may take.
MEASURED = 8  # Answers from whose times we estimate how many calls our own server takes at once.
# Starts of campaigns that are just being paused: known sooner than from PostgreSQL.
REFUSED, REFUSED_MS = "refused", 3000

logger = logging.getLogger(__name__)


def limit_keys(prefix: str, account: tuple[str, str, str]) -> list[str]:
    """Return names in Redis of an account's state, processes, held calls and window."""
    name = sha256("\0".join(account).encode()).hexdigest()[:20]
    # The braces are Redis Cluster's hash tag: the four keys of an account must lie on one node for the script.
    return [f"{prefix}:limit:{{{name}}}:{part}" for part in ("state", "processes", "held", "window")]


def process_name() -> str:
    """Return this process's name as a holder: node@host:pid, with a random suffix unlike any earlier process's."""
    return f"{node_id()[:12]}@{socket.gethostname()[:26]}:{os.getpid()}:{os.urandom(4).hex()}"


class CircuitOpen(Exception):
    """The account answers with nothing but errors."""


class Denied(CircuitOpen):
    """The account refused us a moment ago."""


class Abandoned(Exception):
    """Waiting for a permit was given up: the caller must not send any more."""


@dataclass(frozen=True, slots=True)
class Limit:
    """Limits of an account, the smallest that any of its judges has; 0: none."""

    concurrency: int = 0
    requests_per_minute: int = 0
    tokens_per_minute: int = 0


@dataclass(frozen=True, slots=True)
class Permit:
    """Permission to send one call. `tokens` were reserved in `bucket` of the window."""

    bucket: int
    tokens: int
    tries: bool = False  # The call tries an open circuit.
    epoch: int = 0  # How often the account had refused calls (429) when the permit was granted.
    out: int = 1  # Calls that were in flight then, this one included.


@dataclass(slots=True)
class LimitNews:
    """What Redis has not been told yet, under the names of `limits.lua`. Truth values are 0 or 1, as in the script."""

    ended: int = 0  # Calls of the current epoch that have ended, answered or not.
    good: int = 0  # Those of them that were answered.
    succeeded: int = 0  # The account responded.
    errors: int = 0  # Errors in a row since.
    refused: int = 0  # The account refused a call for now (429).
    pause: int = 0  # Milliseconds that the account asks to wait.
    hint: int = 0  # Requests a minute, by the refusal's headers.
    hold: int = 0  # Milliseconds until the account has room again, by an answer's headers.
    left: int = -1  # Requests that the account takes now, by an answer's headers; -1: unknown.
    late: int = 0  # Milliseconds after which a call had found no answer.
    said: str = ""  # The last error.
    back: list[tuple[int, int]] = field(default_factory=list)  # Unused tokens, with their bucket.

    def __bool__(self) -> bool:
        return self != NOTHING

    def merge(self, later: "LimitNews") -> "LimitNews":
        """Return this news, which could not be sent, together with what was noted since."""
        merged = LimitNews(
            **{name: max(value, getattr(later, name)) for name, value in asdict(self).items() if name != "back"}
        )
        merged.back = self.back + later.back
        merged.ended, merged.good = self.ended + later.ended, self.good + later.good
        merged.errors = later.errors if later.succeeded else self.errors + later.errors
        merged.said = later.said or self.said
        return merged


NOTHING = LimitNews()


class Waiter(asyncio.Future[Permit]):
    """A call that waits for its permit. It takes at most `tokens`, and `limit_s` seconds once it is sent."""

    def __init__(self, tokens: int, should_stop: Callable[[], bool], patience: int, limit_s: float = 0.0) -> None:
        super().__init__()
        self.tokens, self.stopped, self.limit_s = tokens, should_stop, limit_s
        self.patience = patience  # How often the circuit may open meanwhile; 0: an open circuit turns the call away.
        self.opened: int | None = None  # How often the circuit had opened when the call first found it open.


class AccountLimits:
    """Limits of one account in one worker process, on the process's event loop."""

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
        self.limit_set_at = 0.0
        self.process = process
        self.limit = Limit()
        self.waiters: deque[Waiter] = deque()
        self.held = 0  # Permits that this process holds.
        self.changed = asyncio.Event()
        self.news = LimitNews()
        self.epoch = 0  # Calls granted before the last refusal tell nothing about the time after it.
        self.durations: deque[float] = deque(maxlen=MEASURED)  # Seconds of the last answers, over the calls in flight.
        self.limited_in_a_row = 0  # Refusals (429), of all processes.
        self.answers = 0  # Calls of this process that the account has answered.
        self.paused_until = 0.0
        self.paused_clock = 0  # The same in seconds since 1970, for people.
        self.last_error = ""
        self.denied_until = 0.0
        self.denial = ""  # Why until then: later errors of the account do not replace it.
        self.accepted = False  # The account has answered this process, and has not refused its key since.
        self.in_a_row = 0  # Errors since the account last answered, as far as this process knows.
        self.is_connected = True  # False after a call found no connection, until the account responds.
        self.opened = 0  # How often the circuit opened since the account last answered any process; 0: it is closed.
        self.open_until = 0.0
        self.is_tried = False  # A call of some process is trying the open circuit.
        self.tries = False  # That call is ours.
        self.looking = False
        self.task: asyncio.Task[None] | None = None

    def apply_limit(self, limit: Limit) -> None:
        """Set the account's current limit, and forget earlier refusals."""
        self.limit, self.denied_until, self.limit_set_at = limit, 0.0, time.monotonic()

    @property
    def is_open(self) -> bool:
        """True if calls are held back: the circuit is open, another process tries."""
        return self.opened > 0 and not self.tries and time.monotonic() < self.open_until

    @property
    def pause_left(self) -> float:
        """Seconds until calls are sent again after a refusal (429); 0.0: now."""
        return max(0.0, self.paused_until - time.monotonic())

    @property
    def seconds_left(self) -> float:
        """Seconds until the account is called again, as far as is known; 0.0: now."""
        until = max(self.paused_until, self.open_until if self.opened and not self.tries else 0.0)
        return max(0.0, until - time.monotonic())

    @property
    def problem(self) -> str:
        """What is wrong with an account that is not called for a while, and until when."""
        if self.paused_until >= self.open_until:
            until = datetime.fromtimestamp(self.paused_clock, UTC)
            return f"{self.name} asks to wait until {until:%Y-%m-%d %H:%M:%S} UTC: {self.last_error}"
        return f"{self.name} does not answer: {self.last_error}"

    def is_isolated_failure(self, tries: int) -> bool:
        """Return whether a question whose `tries` failed caused all errors in a row: then the account works."""
        return self.opened == 0 and self.is_connected and self.in_a_row <= tries

    async def acquire(
        self, tokens: int, should_stop: Callable[[], bool], patience: int = GIVE_UP_AFTER, limit_s: float = 0.0
    ) -> Permit:
        """Wait until one call of at most `tokens` may be sent.

        Raises Denied, CircuitOpen after `patience` openings of the circuit, and Abandoned once `stopped` returns True.
        """
        # A refused key is refused for every call, so Redis is not asked.
        if time.monotonic() < self.denied_until:
            raise Denied(self.denial)
        waiter = Waiter(tokens, should_stop, patience, limit_s)
        self.waiters.append(waiter)
        self._wake()
        try:
            return await waiter
        except asyncio.CancelledError:
            # The permit may have come in the same pass of the loop: nobody else would return it.
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self.release(waiter.result())
            raise

    def release(self, permit: Permit, used: int | None = None) -> None:
        """Note that the call has ended, and return unused tokens; `used`: None for a call that was never sent."""
        self.held -= 1
        self.news.ended += permit.epoch == self.epoch
        self.tries = self.tries and not permit.tries
        unused = permit.tokens - (used or 0)
        if unused > 0 and self.limit.tokens_per_minute:
            self.news.back.append((permit.bucket, min(unused, self.limit.tokens_per_minute)))
        self._wake()

    def responded(self, permit: Permit | None = None, seconds: float = 0.0, rate: Rate | None = None) -> None:
        """Note that the account responded, even with a rejection: its errors in a row end."""
        self.news.succeeded, self.news.errors, self.in_a_row = 1, 0, 0
        self.opened, self.open_until, self.is_connected = 0, 0.0, True
        self.answers += 1
        if permit is None:
            return
        # For each answer after the last refusal one more call may be in flight.
        self.news.good += permit.epoch == self.epoch
        if self.is_local and seconds > 0:
            self.durations.append(seconds / max(1, permit.out))
        if rate is not None:
            self.news.left = rate.left if self.news.left < 0 else min(self.news.left, rate.left)
            self.news.hold = max(self.news.hold, int(rate.hold * 1000))

    def failed(self, error: str, *, unsent: bool = False) -> None:
        """Count a call that brought no answer; `unsent`: it found no connection, which no question can cause."""
        self.news.errors += 1
        self.in_a_row += 1
        self.is_connected = self.is_connected and not unsent
        self.last_error = self.news.said = error

    def timed_out(self, permit: Permit, limit_s: float) -> str:
        """Lower the concurrency after a call had no answer within `limit_s`; return the settings that would help."""
        self.news.late = int(limit_s * 1000)
        if permit.out == 1:
            return f"set timeout_s = {advised_timeout(5 * limit_s)}"
        fits = self.fits(limit_s)
        if fits and fits < permit.out:  # others were answered: this one waited for those before it
            timeout = advised_timeout(self._median_duration() * permit.out / SERVED)
            return f"set max_concurrency = {fits}, or timeout_s = {timeout}: {permit.out} calls were out at once"
        timeout = advised_timeout(limit_s * permit.out if self.is_local else 5 * limit_s)
        concurrency = 1 if self.is_local else max(1, permit.out // 4)
        return f"set max_concurrency = {concurrency} and timeout_s = {timeout}: {permit.out} calls were out at once"

    def fits(self, limit_s: float) -> int:
        """Return how many calls at once our own server answers within `limit_s`; 0: unknown."""
        if not self.durations or limit_s <= 0:
            return 0
        return max(1, int(SERVED * limit_s / self._median_duration()))

    def _median_duration(self) -> float:
        return sorted(self.durations)[len(self.durations) // 2]

    def deny(self, error: str, sent: float) -> None:
        """Turn away all calls that wait for an account that refused our key to a call of `sent`."""
        if sent < self.limit_set_at:
            return  # the account's settings have been read since, and may have been corrected
        self.denied_until, self.denial, self.accepted = time.monotonic() + DENIED_S, error, False
        while self.waiters:
            waiter = self.waiters.popleft()
            if not waiter.done():
                waiter.set_exception(Denied(error))

    def look(self) -> None:
        """Ask Redis for the state of the circuit, which another process may be trying."""
        self.looking = True
        self._wake()

    def limited(self, error: str, seconds: float | None, permit: Permit | None = None, hint: int = 0) -> None:
        """Pause all workers' calls to this account after it refused one for now (429).

        `seconds`: the wait that the account asks for, if any. `hint`: requests a minute, by the headers.
        """
        # One refusal is enough: calls that were sent before it was known tell nothing new.
        if permit is None or permit.epoch == self.epoch:
            self.news.refused, self.news.hint = 1, hint
        # A refusal is a response: the account can be reached.
        self.news.succeeded, self.news.errors, self.in_a_row = 1, 0, 0
        self.is_connected = True
        self.last_error = self.news.said = error
        # A millisecond more, since fractions are cut off.
        self.news.pause = max(self.news.pause, int(seconds * 1000) + 1 if seconds else 0)
        self._wake()

    def pause(self, seconds: float) -> None:
        """Pause all workers' calls to this account for `seconds`."""
        self.news.pause = max(self.news.pause, int(seconds * 1000) + 1)
        self._wake()

    def drop_cancelled(self) -> None:
        """Turn away waiting calls that must no longer be sent."""
        for waiter in [waiter for waiter in self.waiters if waiter.stopped()]:
            self.waiters.remove(waiter)
            if not waiter.done():
                waiter.set_exception(Abandoned())

    def _wake(self) -> None:
        self.changed.set()
        if self.task is None or self.task.done():
            # One task for an account serves all its waiters, and ends by itself when there is no news
            # left. Its log lines must not carry the fields of the call that happened to start it.
            self.task = asyncio.create_task(self._serve(), context=Context())

    async def _serve(self) -> None:
        """Run `limits.lua` as long as calls wait for the account or are in flight."""
        while self.waiters or self.held or self.news or self.looking:
            self.changed.clear()
            await asyncio.sleep(GATHER_S)
            try:
                wait = await self._exchange()
            except (RedisError, OSError) as error:
                logger.warning("Redis is away, calls to %s wait: %s", self.name, error)
                # No call is sent without a permit, so no limit is broken while Redis is away.
                await asyncio.sleep(0.5)
                continue
            if not (self.waiters or self.held or self.news):
                return
            with suppress(TimeoutError):
                # A third of the lease, so that Redis hears from this process even without changes.
                async with asyncio.timeout(min(wait, LEASE_S / 3)):
                    await self.changed.wait()

    async def _exchange(self) -> float:
        """Tell Redis the news and ask for permits; return the seconds until the next exchange makes sense.

        1. Collect the news and the waiting calls.
        2. Run the script; put the news back if Redis is away.
        3. Take over what the script knows from all processes: refusals, failures, pause, circuit.
        4. Grant the permits to the first waiters, and turn away those that have waited too long.
        """
        # Waiters that have ended; those further back are passed over below.
        while self.waiters and self.waiters[0].done():
            self.waiters.popleft()
        most = GRANTS if self.accepted else max(0, FIRST - self.held)
        waiters = [waiter for waiter in self.waiters if not waiter.done()][:most]
        # Emptied before the exchange: what is noted meanwhile is sent with the next one.
        news, self.news, self.looking = self.news, LimitNews(), False
        limit = self.limit
        arguments = asdict(news) | {
            "process": self.process,
            "lease": int(LEASE_S * 1000),
            "held": self.held,
            "most": limit.concurrency,
            "per_minute": limit.requests_per_minute,
            "tokens_per_minute": limit.tokens_per_minute,
            "fits": self.fits(min((waiter.limit_s for waiter in waiters), default=0.0)),
            "first": 1 if self.is_local else FIRST,
            "epoch": self.epoch,
            "backoff": settings.RETRY_SECONDS * 1000,
            "circuit": CIRCUIT_MS,
            "keep_ms": KEEP_MS,
            "asked": [waiter.tokens for waiter in waiters],
        }
        try:
            pipeline, began = self.redis.pipeline(transaction=False), time.monotonic()
            await self.script(keys=self.keys, args=[json.dumps(arguments)], client=pipeline)
            pipeline.smembers(self.refusals)
            pipeline.hgetall(self.trials.key)
            answer, starts, failures = await pipeline.execute()
        except (RedisError, OSError):
            self.news = news.merge(self.news)
            raise
        granted, wait, bucket, opened, open_ms, pause_ms, epoch, out, limited, trying, errors, message = answer
        self.limited_in_a_row = limited
        self.refused |= {start.decode() for start in starts}
        self.trials.merge(failures, began)
        now = time.monotonic()
        if epoch != self.epoch:  # what was noted meanwhile is about calls sent before the refusal
            self.news.ended = self.news.good = self.news.refused = 0
        self.epoch, self.paused_until = epoch, now + pause_ms / 1000
        if abs(time.time() + pause_ms / 1000 - self.paused_clock) > 2:  # else the same moment, measured once more
            self.paused_clock = math.ceil(time.time() + pause_ms / 1000)
        self.last_error = message.decode() or self.last_error
        if not self.news.succeeded:  # else an answer came meanwhile, of which Redis hears next
            self.opened, self.open_until, self.is_tried = opened, now + open_ms / 1000, bool(opened and trying)
            self.in_a_row = errors + self.news.errors
        for position, waiter in enumerate(waiters[:granted], 1):
            if waiter in self.waiters:
                self.waiters.remove(waiter)
            self.held += 1
            permit = Permit(bucket, waiter.tokens, opened > 0, epoch, out - granted + position)
            self.tries = self.tries or permit.tries
            if waiter.done():  # cancelled while Redis answered
                self.release(permit)
            else:
                waiter.set_result(permit)
        for waiter in waiters[granted:]:
            is_long = self.limited_in_a_row >= REFUSALS or self.pause_left > LONGEST_PAUSE_S
            problem = self.problem if waiter.patience and is_long else ""
            if not problem:
                waiter.opened = (waiter.opened or opened) if opened else None
                if waiter.opened is not None and opened - waiter.opened >= waiter.patience:
                    problem = f"{self.name} does not answer: {self.last_error}"
            if problem and not waiter.done() and waiter in self.waiters:
                self.waiters.remove(waiter)
                waiter.set_exception(CircuitOpen(problem))
        if len(waiters) == granted:
            return 0.0 if self.waiters and (self.accepted or self.held < FIRST) else LEASE_S
        return float(wait) / 1000


class RateLimits:
    """Limits of all accounts in one worker process."""

    def __init__(self, open_redis: Callable[[], Redis], prefix: str, process: str) -> None:
        self.redis = open_redis()
        self.prefix = prefix
        self.process = process
        self.accounts: dict[tuple[str, str, str], AccountLimits] = {}
        # Starts of campaigns (`Plan.start`) in which an account refused a call, in any process.
        self.refused: set[str] = set()
        self.trials = Trials(self.redis, prefix)
        self.tasks: set[asyncio.Task[None]] = set()  # asyncio itself has only weak references to them.

    def account(self, name: tuple[str, str, str]) -> AccountLimits:
        if name not in self.accounts:
            self.accounts[name] = AccountLimits(self.redis, self.prefix, name, self.process, self.refused, self.trials)
        return self.accounts[name]

    def refuse(self, start: str) -> None:
        """Tell all processes that an account refused a call of this start of a campaign, so that none sends another."""

        async def publish_refusal() -> None:
            key = f"{self.prefix}:{REFUSED}"
            try:
                await self.redis.sadd(key, start)
                await self.redis.pexpire(key, REFUSED_MS)
            except (RedisError, OSError) as error:
                logger.warning("Redis is away, the others find out by themselves: %s", error)

        if start not in self.refused:
            self.refused.add(start)
            task = asyncio.create_task(publish_refusal(), context=Context())
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    def drop_cancelled(self) -> None:
        for account in self.accounts.values():
            account.drop_cancelled()

    async def close(self) -> None:
        """Send Redis the last news, and close the connection."""
        tasks = [account.task for account in self.accounts.values() if account.task is not None]
        if tasks:
            _, late_tasks = await asyncio.wait(tasks, timeout=CLOSE_S)
            for task in late_tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        await self.redis.aclose()
