"""Worker loop: keeps up to PAIRS_IN_FLIGHT pairs of one campaign in work, and claims more as they end.

A time slice ends after DRAIN_SECONDS and leaves its pairs in flight: the process's event loop keeps
running, so no answer is lost between two slices.
"""

import asyncio
import logging
import time
from collections import deque
from contextlib import suppress
from functools import partial

from django.conf import settings
from structlog.contextvars import bind_contextvars

from judges.engine import leases, pairs, targets
from judges.engine.answers import one_line, recover_answers
from judges.engine.budget import Budget, BudgetExhausted
from judges.engine.calls import Caller, Cancelled, Tools
from judges.engine.leases import Claimed
from judges.engine.limits import SIT_OUT_S, AccountLimits
from judges.engine.plan import Plan

IDLE_S = 5.0  # A time slice ends when there was nothing to do for this time: other workers' pairs may come back.
LOOK_S = 0.5  # How often the loop reads the campaign's state, and looks for expired leases while it is idle.

logger = logging.getLogger(__name__)


class WorkerLoop:
    """The pairs of one campaign that one process works on, with their calls."""

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
        self.stated_reason = plan.row.paused_because
        for account, limit in plan.limits.items():
            self.tools.limits.account(account).apply_limit(limit)
        self.needed = [self.tools.limits.account(judge.account) for judge in plan.needed]

    @property
    def halted(self) -> bool:
        """True if no call may be sent: for good, or until an account in trouble answers again."""
        return self.over or self.trouble is not None

    @property
    def over(self) -> bool:
        """True if this run of the campaign has ended: no call is sent until it is restarted."""
        return self.stopping or self.state != "running" or self.plan.start in self.tools.limits.refused

    @property
    def trouble(self) -> AccountLimits | None:
        """An account that every pair needs, and that is not called for a while."""
        return next((account for account in self.needed if account.is_open or account.pause_left > SIT_OUT_S), None)

    def _refused(self, start: str, why: str) -> None:
        """Note that an account refuses every call; `why` is empty until its message has been read."""
        self.tools.limits.refuse(start)
        if start != self.plan.start:
            return  # a call from before the campaign was resumed
        self.refusal = self.refusal or why
        self.changed.set()

    @property
    def claimed_pairs(self) -> list[Claimed]:
        return [*self.waiting, *self.tasks.values()]

    @property
    def room(self) -> int:
        """Number of pairs to work on at once: one while a circuit is tried."""
        # One pair tries an open circuit. More would fail with it, each doubling the wait.
        most: int = settings.PAIRS_IN_FLIGHT
        return 1 if any(account.opened for account in self.needed) else most

    async def run_time_slice(self) -> float | None:
        """Work until the time slice is over or nothing can be done.

        Return the seconds after which the campaign continues; None if nothing is left.

        1. Read the campaign's state every LOOK_S seconds. A campaign that is over or out of money ends the slice.
        2. Claim pairs and start them.
        3. With no pair in work, close the campaign if all of its pairs have ended.
        4. Otherwise leave the worker to others: after IDLE_S without work, or while an account is in trouble.
        """
        slice_end, last_look, last_busy = time.monotonic() + settings.DRAIN_SECONDS, 0.0, time.monotonic()
        await self.tools.limits.trials.forget_start(self.plan.start, earlier=True)
        while True:
            now = time.monotonic()
            if now - last_look >= LOOK_S:
                await self._look()
                last_look = now
            if self.over or self.spent:
                await self._shut_down()
                return None
            if now >= slice_end:
                await self._release(self.waiting)
                return 0.0
            if await self._top_up() or self.tasks:
                last_busy = time.monotonic()
            elif await self._finish():
                return None
            elif (trouble := self.trouble) is None:
                if time.monotonic() - last_busy >= IDLE_S:
                    return IDLE_S
            elif trouble.is_tried:  # by another process: its result is known soon
                return IDLE_S
            elif trouble.seconds_left > SIT_OUT_S:
                return trouble.seconds_left
            await self._wait(LOOK_S)

    async def _top_up(self) -> bool:
        """Claim and start as many pairs as fit; return whether there were any to start."""
        if self.trouble is not None:
            # Waiting calls are dropped before their pairs are released: else they are sent without a lease.
            self.tools.limits.drop_cancelled()
            await self._release(self.waiting)
            return False
        # More are claimed once a quarter is left, so that calls are sent while PostgreSQL answers.
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
        has_pairs = bool(self.waiting)
        while self.waiting and len(self.tasks) < self.room and not self.halted:
            claimed = self.waiting.popleft()
            task = asyncio.create_task(self._judge(claimed))
            self.tasks[task] = claimed
            task.add_done_callback(self._forget_task)
            await asyncio.sleep(0)  # rendering a pair's prompts takes a while: answers are read in between
        return has_pairs

    def _forget_task(self, task: "asyncio.Task[None]") -> None:
        del self.tasks[task]
        self.changed.set()

    async def _judge(self, claimed: Claimed) -> None:
        """Judge one pair, or write its target, and store the outcome; without one, release or postpone the pair."""
        bind_contextvars(**self.plan.log_fields(claimed.pair))  # for this task alone
        try:
            work = targets.write_target if self.plan.writes else pairs.judge_pair
            row = await work(self.caller, claimed)
        except Cancelled:
            if claimed.lease.lost or not (claimed.lease.waits or self.trouble):
                await self._release([claimed])
            else:
                await self.tools.writer.ask(lambda connection: leases.postpone_pairs(connection, [claimed]))
            return
        except BudgetExhausted:
            # The other pairs stop too: only calls in flight are awaited.
            self.spent = True
            await self._release([claimed])
            return
        except Exception as error:
            logger.exception("pair %s of %s cannot be judged", claimed.pair, self.plan.row.full_name)
            row = pairs.fail_pair(self.plan, claimed, error)
        try:
            await self.tools.writer.write(row)
            pairs.log_outcome(row)
        # The row could not be stored, probably because of a model's text: the pair fails alone, the loop continues.
        except Exception as error:
            logger.exception("the outcome of pair %s cannot be stored", claimed.pair)
            try:
                await self.tools.writer.write(pairs.fail_pair(self.plan, claimed, error))
            except Exception:  # its lease expires, and the claims after it give up
                logger.exception("nor can it be said that pair %s failed", claimed.pair)

    async def _look(self) -> None:
        """Read the campaign's state, as its admins last set it, and write into its row which account it waits for."""
        self.state = await self.budget.look()
        for account in self.needed:
            if account.opened or account.pause_left:
                account.look()
        trouble = self.trouble
        reason = one_line(trouble.problem) if trouble else ""
        # Written only when it changes: the loop looks twice a second.
        if reason != self.stated_reason and not self.over:
            values = {"campaign": self.plan.campaign, "why": reason}
            await self.tools.writer.ask(lambda connection: connection.execute(leases.WAITS_FOR, values).rowcount)
            self.stated_reason = reason

    async def _pause(self) -> None:
        """Pause the campaign until the account that refuses every call has been corrected."""
        # Only the state is compared here; the statement compares the start (`leases.PAUSE`).
        if not self.refusal or self.state != "running":
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
        """Release the pairs that have not begun, and wait for the answers of the calls in flight."""
        await self._release(self.waiting)
        # Waiting calls are dropped before each wait, since a call that ends may let another begin.
        self.tools.limits.drop_cancelled()
        while self.tasks:
            await self._pause()
            await self._wait(LOOK_S)
            self.tools.limits.drop_cancelled()
        await self._pause()
        await self.budget.close()
        if self.spent and not self.over:
            await self.budget.stop()

    async def _release(self, claimed_pairs: "deque[Claimed] | list[Claimed]") -> None:
        # A lost pair belongs to another worker, and releasing it would take it away there.
        ours = [claimed for claimed in claimed_pairs if not claimed.lease.lost]
        claimed_pairs.clear()
        if ours:
            await self.tools.writer.ask(lambda connection: leases.release(connection, ours))

    async def _finish(self) -> bool:
        """Close the campaign if all of its pairs have ended, in every worker; return whether it is over."""
        # Reservations go back first: the campaign must not end with money reserved.
        await self.budget.close()
        finish = partial(leases.finish_campaign, campaign=self.plan.campaign, collection=self.plan.collection)
        is_closed = await self.tools.writer.ask(finish)
        if is_closed:
            await self.tools.limits.trials.forget_start(self.plan.start)
        await self._look()
        return is_closed or self.state != "running"
