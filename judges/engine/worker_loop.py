"""Worker loop: it keeps C pairs of one campaign in work and refills as each ends.

It ends after a while and leaves its pairs in flight: the process's loop goes on, so nothing that
was asked is lost between two drains.
"""

import asyncio
import logging
import time
from collections import deque
from contextlib import suppress
from functools import partial

from django.conf import settings
from structlog.contextvars import bind_contextvars

from judges.costs.budget import Budget, BudgetExhausted
from judges.engine import leases, pairs, targets
from judges.engine.answers import one_line, recover_answers
from judges.engine.calls import Caller, Cancelled, Tools
from judges.engine.leases import Claimed
from judges.engine.limits import SIT_OUT_S, AccountLimits
from judges.engine.plan import Plan

IDLE_S = 5.0  # A turn ends when there was nothing to do for so long: what others hold may come back.
LOOK_S = 0.5  # How often a drain looks at the campaign's state, and for expired leases when it has nothing to do.

logger = logging.getLogger(__name__)


class WorkerLoop:
    """Pairs of one campaign that one process works on, with their calls."""

    def __init__(self, tools: Tools, plan: Plan) -> None:
        self.tools = tools
        self.budget = Budget(tools.writer, plan.campaign, tools.holder, settings.LEASE_SECONDS)
        self.waiting: deque[Claimed] = deque()
        self.tasks: dict[asyncio.Task[None], Claimed] = {}
        self.changed = asyncio.Event()
        self.stopping = False
        self.apply_plan(plan)

    def apply_plan(self, plan: Plan) -> None:
        self.plan = plan
        self.budget.apply_plan(plan)
        self.caller = Caller(self.tools, plan, self.budget, lambda: self.halted, partial(self._refused, plan.start))
        self.spent = False
        self.state = "running"
        self.refusal = ""
        self.told = plan.row.paused_because
        for account, limit in plan.limits.items():
            self.tools.limits.account(account).apply_limit(limit)
        self.needed = [self.tools.limits.account(judge.account) for judge in plan.needed]

    @property
    def halted(self) -> bool:
        """True if sending is stopped: for good, or until an account in trouble answers again."""
        return self.over or self.trouble is not None

    @property
    def over(self) -> bool:
        """True if this run of the campaign has ended: nothing is sent until it is restarted."""
        return self.stopping or self.state != "running" or self.plan.start in self.tools.limits.refused

    @property
    def trouble(self) -> AccountLimits | None:
        """An account that every pair needs, and that is not asked for a while."""
        return next((one for one in self.needed if one.is_open or one.pause_left > SIT_OUT_S), None)

    def _refused(self, start: str, why: str) -> None:
        """Note that an account refuses us, and would refuse everything else. What it said comes a moment later."""
        self.tools.limits.refuse(start)
        if start != self.plan.start:
            return  # a call from before somebody mended the account
        self.refusal = self.refusal or why
        self.changed.set()

    @property
    def held(self) -> list[Claimed]:
        return [*self.waiting, *self.tasks.values()]

    @property
    def room(self) -> int:
        """Number of pairs in work at once: one while a circuit is tried."""
        # One pair tries an open circuit. More would fail with it, each doubling the wait.
        most: int = settings.PAIRS_IN_FLIGHT
        return 1 if any(account.opened for account in self.needed) else most

    async def run_time_slice(self) -> float | None:
        """Work until the time slice is over or nothing can be done; seconds until it goes on. None: nothing is left."""
        until, looked, busy = time.monotonic() + settings.DRAIN_SECONDS, 0.0, time.monotonic()
        await self.tools.limits.trials.forget_start(self.plan.start, earlier=True)
        while True:
            now = time.monotonic()
            if now - looked >= LOOK_S:
                await self._look()
                looked = now
            if self.over or self.spent:
                await self._shut_down()
                return None
            if now >= until:
                await self._release(self.waiting)
                return 0.0
            # Ended when neither a pair was claimed nor one is in work, and the campaign has none left anywhere.
            if await self._top_up() or self.tasks:
                busy = time.monotonic()
            elif await self._finish():
                return None
            elif (seconds := self._rest(time.monotonic() - busy)) > 0:
                return seconds
            await self._wait(LOOK_S)

    def _rest(self, idle: float) -> float:
        """Return how long the worker may do something else, now that nothing of the campaign is in work; 0.0: not."""
        trouble = self.trouble
        if trouble is None:
            return IDLE_S if idle >= IDLE_S else 0.0
        if trouble.is_tried:  # by another process: what comes of it is known soon
            return IDLE_S
        return trouble.seconds_left if trouble.seconds_left > SIT_OUT_S else 0.0

    async def _top_up(self) -> bool:
        """Start the pairs that fit; return whether there are or were any to start."""
        if self.trouble is not None:
            # Waiting calls let go before their pairs go back: else they leave without a lease.
            self.tools.limits.drop_cancelled()
            await self._release(self.waiting)
            return False
        # Claimed anew at a quarter, so that calls go on while PostgreSQL answers.
        if len(self.waiting) < max(1, self.room // 4) and len(self.tasks) < self.room:
            # Answers of dead workers first: a pair claimed below finds them and does not pay again.
            await recover_answers(self.tools.writer, self.tools.writer.spool.folder)
            ask = partial(
                leases.claim,
                plan=self.plan,
                lease=settings.LEASE_SECONDS,
                n=min(leases.BATCH, self.room),
                stalled=partial(self.tools.writer.stalled, settings.LEASE_SECONDS / 2),
            )
            self.waiting.extend(await self.tools.writer.ask(ask))
        some = bool(self.waiting)
        while self.waiting and len(self.tasks) < self.room and not self.halted:
            claimed = self.waiting.popleft()
            task = asyncio.create_task(self._judge(claimed))
            self.tasks[task] = claimed
            task.add_done_callback(self._ended)
            await asyncio.sleep(0)  # a pair's prompts take a while: what arrives is read between them
        return some

    def _ended(self, task: "asyncio.Task[None]") -> None:
        del self.tasks[task]
        self.changed.set()

    async def _judge(self, claimed: Claimed) -> None:
        bind_contextvars(**self.plan.log_fields(claimed.pair))  # for this task alone
        try:
            work = targets.write_target if self.plan.writes else pairs.judge_pair
            row = await work(self.caller, claimed)
        except Cancelled:
            await self._put_back(claimed)
            return
        except BudgetExhausted:
            self.spent = True
            # The rest of the pairs end too: only what is out is waited for.
            await self._release([claimed])
            return
        except Exception as error:
            logger.exception("pair %s of %s cannot be judged", claimed.pair, self.plan.row.full_name)
            row = pairs.fail_pair(self.plan, claimed, error)
        try:
            await self.tools.writer.write(row)
            pairs.log_outcome(row)
        # Its row could not be stored, probably because of what a model said: the pair fails alone, the loop goes on.
        except Exception as error:
            logger.exception("the outcome of pair %s cannot be stored", claimed.pair)
            try:
                await self.tools.writer.write(pairs.fail_pair(self.plan, claimed, error))
            except Exception:  # its lease expires, and the claims after it give up
                logger.exception("nor can it be said that pair %s failed", claimed.pair)

    async def _look(self) -> None:
        """Look up the campaign's state, as its admins last set it, and accounts in trouble."""
        self.state = await self.budget.look()
        for account in self.needed:
            if account.opened or account.pause_left:
                account.look()
        found = self.trouble
        if found is not None or self.told:
            await self._tell(found.problem if found else "")

    async def _tell(self, why: str) -> None:
        """Say in the campaign's row what the campaign waits for, once."""
        why = one_line(why)
        if why != self.told and not self.over:
            values = {"campaign": self.plan.campaign, "why": why}
            # Written only when it changes: the loop looks twice a second.
            await self.tools.writer.ask(lambda connection: connection.execute(leases.WAITS_FOR, values).rowcount)
            self.told = why

    async def _pause(self) -> None:
        """Let the campaign stand still until somebody has mended an account that refuses us."""
        if not self.refusal or self.state != "running":
            # Only the state is compared here; the statement compares the start (`leases.PAUSE`).
            return
        values = {"campaign": self.plan.campaign, "starts": self.plan.row.starts, "why": self.refusal}
        await self.tools.writer.ask(lambda connection: connection.execute(leases.PAUSE, values).rowcount)
        await self._look()

    async def _wait(self, seconds: float) -> None:
        self.changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.changed.wait()

    async def _shut_down(self) -> None:
        """Hand back the pairs that have not begun, take in the calls that are out."""
        await self._release(self.waiting)
        # Waiting calls are told before each wait, since calls that end may let others begin.
        self.tools.limits.drop_cancelled()
        while self.tasks:
            await self._pause()
            await self._wait(LOOK_S)
            self.tools.limits.drop_cancelled()
        await self._pause()
        await self.budget.close()
        if self.spent and not self.over:
            await self.budget.stop()

    async def _release(self, held: "deque[Claimed] | list[Claimed]") -> None:
        # A lost pair belongs to another worker, and giving it back would take it from there.
        mine = [one for one in held if not one.lease.lost]
        held.clear()
        if mine:
            await self.tools.writer.ask(lambda connection: leases.release(connection, mine))

    async def _put_back(self, claimed: Claimed) -> None:
        """Hand back a pair that was stopped: it waits where an account is in trouble."""
        if claimed.lease.lost or not (claimed.lease.waits or self.trouble):
            await self._release([claimed])
            return
        await self.tools.writer.ask(lambda connection: leases.postpone_pairs(connection, [claimed]))

    async def _finish(self) -> bool:
        """Close the campaign when all its pairs have ended, here and elsewhere."""
        # Reservations go back first: the campaign must not end with money held.
        await self.budget.close()
        done = partial(leases.finish_campaign, campaign=self.plan.campaign, collection=self.plan.collection)
        closed = await self.tools.writer.ask(done)
        if closed:
            await self.tools.limits.trials.forget_start(self.plan.start)
        await self._look()
        return closed or self.state != "running"
