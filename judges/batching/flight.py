"""One process's work on a batch campaign: walk, submit, look, take in, and so on (judges.batching)."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from psycopg import Connection

from judges.batching import store
from judges.batching.caller import LEASE_S, Collector, Patient, Waits
from judges.batching.endpoints import ENDPOINTS, Endpoint, is_final
from judges.batching.store import Out
from judges.engine import claims, pairs
from judges.engine.answers import Sent, one_line
from judges.engine.budget import Spent
from judges.engine.calls import Stopped, Tools
from judges.engine.claims import Claimed
from judges.engine.drain import Pace
from judges.engine.plan import Plan
from judges.engine.rows import Attempted
from judges.engine.takeover import meaning
from judges.records import Body, Judge, ProviderError, Rejected, Reply, Unreachable

CHUNK = 64
"""Pairs in memory at a time, and answers that are stored together."""
TICK_S = 0.2

Result = TypeVar("Result")

logger = logging.getLogger(__name__)


class BatchFlight:
    """The same doors as judges.engine.drain.Flight. It holds no lease that anybody must renew."""

    def __init__(self, tools: Tools, plan: Plan, pace: Pace, poll: float) -> None:
        self.tools, self.pace, self.poll = tools, pace, poll
        self.held: list[Claimed] = []
        self.budget = Patient(tools.writer, plan.campaign, f"batch:{plan.campaign}", LEASE_S)
        self.endpoints: dict[tuple[str, str, str], Endpoint] = {}
        self.cancelled: set[int] = set()
        self.stopping = False
        self.spent = False
        self.state = "running"
        self.take(plan)

    def take(self, plan: Plan) -> None:
        """Go on with what the campaign says now."""
        self.plan = plan
        self.budget.take(plan)
        self.caller = Collector(self.tools, plan, self.budget, lambda: self.stopping)
        self.spent = False
        for account, limit in plan.limits.items():
            self.tools.limits.account(account).limit = limit

    async def drain(self) -> bool:
        """Work until there is nothing to do (False) or the time is over (True: call again)."""
        taken = await self._ask(lambda connection: connection.execute(store.TAKE, [self.plan.campaign]).fetchone())
        if not (taken and taken[0]):
            return False  # another process is at it
        try:
            return await self._work(time.monotonic() + self.pace.seconds)
        finally:
            for endpoint in self.endpoints.values():
                await endpoint.close()
            self.endpoints.clear()
            await self._ask(lambda connection: connection.execute(store.LEAVE, [self.plan.campaign]).rowcount)

    async def _land(self) -> None:
        """The worker ends: everything stands in tables already."""
        self.stopping = True

    async def _work(self, until: float) -> bool:
        while not self.stopping:
            await self._look()
            if out := await self._ask(partial(store.out, campaign=self.plan.campaign)):
                for batch in out:
                    await self._tend(batch)
                if not await self._rest(until):
                    return not self.stopping
            elif self.state != "running":
                await self._put_back()
                return False
            elif await self._ask(partial(store.form, campaign=self.plan.campaign)):
                continue
            elif not await self._walk():
                return False
        return False

    async def _rest(self, until: float) -> bool:
        """Until it is time to look again; False when the drain's time, or the worker's, is over."""
        again = time.monotonic() + self.poll
        while (now := time.monotonic()) < again:
            if self.stopping or now >= until:
                return False
            await asyncio.sleep(min(TICK_S, self.poll))
        return True

    async def _walk(self) -> bool:
        """Every pair as far as its evidence takes it; False when nothing is left to do, or no money."""
        self.spent = self.budget.exhausted = False
        await self._ask(partial(store.renew, campaign=self.plan.campaign, holder=self.budget.holder))
        waiting, after = False, 0
        while chunk := await self._next(after):
            after = max(one.work for one in chunk)
            waiting = await self._judge(chunk) or waiting
        while not self.spent and not self.stopping and (chunk := await self._claim()):
            waiting = await self._judge(chunk) or waiting
        await self.budget.close()
        if waiting or self.stopping:
            return waiting
        if self.spent:
            await self._put_back()
            await self.budget.stop()
            return False
        await self._ask(partial(claims.finish, campaign=self.plan.campaign, collection=self.plan.collection))
        return False

    async def _next(self, after: int) -> list[Claimed]:
        plan = self.plan
        known = partial(claims.held, campaign=plan.campaign, collection=plan.collection, instruction=plan.instruction)
        return await self._ask(partial(known, after=after, n=CHUNK))

    async def _claim(self) -> list[Claimed]:
        plan = self.plan
        ask = partial(claims.claim, campaign=plan.campaign, collection=plan.collection, instruction=plan.instruction)
        return await self._ask(partial(ask, lease=LEASE_S, n=CHUNK))

    async def _judge(self, chunk: Sequence[Claimed]) -> bool:
        """All of them at the same time; whether any of them waits for a batch now."""
        waits = await asyncio.gather(*map(self._judge_one, chunk))
        collected, self.caller.collected = self.caller.collected, []
        if collected:
            await self._ask(partial(store.add, campaign=self.plan.campaign, collected=collected))
        return any(waits)

    async def _judge_one(self, claimed: Claimed) -> bool:
        try:
            row = await pairs.judge(self.caller, claimed)
        except Waits:
            return True
        except Spent:
            self.spent = True
            return False
        except Stopped:
            return False
        except Exception as error:
            logger.exception("pair %s of campaign %s cannot be judged", claimed.pair, self.plan.campaign)
            row = pairs.broken(self.plan, claimed, error)
        await self.tools.writer.write(row)
        return False

    async def _tend(self, batch: Out) -> None:
        """Submit it, or look at it, and take in what it brought. What goes wrong is tried again at the next look."""
        try:
            endpoint = self._endpoint(batch.judge)
            if not batch.provider_id:
                await self._submit(endpoint, batch)
                return
            if self.state == "cancelled" and batch.id not in self.cancelled:
                self.cancelled.add(batch.id)
                await endpoint.cancel(batch.provider_id)
            look = await endpoint.look(batch.provider_id)
            if look.ended:
                await self._take_in(endpoint, batch, look.failure)
        except Exception as error:
            logger.warning("batch %s: %s", batch.name, one_line(str(error)))
            if is_final(error) and not batch.provider_id:
                await self._all_failed(batch, Rejected(one_line(str(error)), raw=str(error)))
            else:
                await self._ask(partial(store.troubled, batch=batch.id, problem=one_line(str(error))))

    async def _submit(self, endpoint: Endpoint, batch: Out) -> None:
        """One that was submitted by a process that died before it could say so is found, not sent twice."""
        found = await endpoint.find(batch.name)
        if found is None and self.state != "running":
            await self._ask(partial(store.dissolve, batch=batch.id))
            return
        if found is None:
            calls = await self._ask(partial(store.calls, batch=batch.id))
            found = await endpoint.submit(batch.name, [(_key(id), request) for id, (_, request) in calls.items()])
        await self._ask(partial(store.submitted, batch=batch.id, provider_id=found))

    async def _take_in(self, endpoint: Endpoint, batch: Out, failure: str) -> None:
        answers: dict[int, Body | ProviderError] = {}
        if not failure:
            async for key, answer in endpoint.answers(batch.provider_id):
                answers[_id(key)] = answer
                if len(answers) == CHUNK:
                    await self._store(batch, answers)
                    answers = {}
            await self._store(batch, answers)
        error = Rejected if failure else Unreachable
        await self._all_failed(batch, error(f"{batch.judge.provider}: {failure or 'no answer in its batch'}"))

    async def _all_failed(self, batch: Out, error: ProviderError) -> None:
        """Calls that brought nothing are tried again, or their pairs fail, as the error says; the batch is over."""
        while ids := await self._ask(partial(store.left, batch=batch.id, n=CHUNK)):
            await self._store(batch, dict.fromkeys(ids, error))
        await self._ask(partial(store.ended, batch=batch.id))

    async def _store(self, batch: Out, answers: dict[int, Body | ProviderError]) -> None:
        calls = await self._ask(partial(store.calls, batch=batch.id, ids=list(answers)))
        attempts = [await _attempted(sent, answers[id]) for id, (sent, _) in calls.items()]
        shard = self.tools.writer.shard
        await self._ask(partial(store.answered, attempts=attempts, ids=list(calls), shard=shard))

    async def _put_back(self) -> None:
        await self.budget.close()
        await self._ask(partial(store.put_back, campaign=self.plan.campaign, holder=self.budget.holder))

    async def _look(self) -> None:
        """The campaign's state, as its admins last set it."""
        self.state = await self.budget.look()

    def _endpoint(self, judge: Judge) -> Endpoint:
        if judge.account not in self.endpoints:
            self.endpoints[judge.account] = ENDPOINTS[judge.provider](judge)
        return self.endpoints[judge.account]

    async def _ask(self, question: Callable[[Connection[Any]], Result]) -> Result:
        return await self.tools.writer.ask(question)


async def _attempted(sent: Sent, answer: Body | ProviderError) -> Attempted:
    """The attempt that an answer is, as if it had come at once; it took as long as the batch."""
    result: Reply | ProviderError = await meaning(sent.judge, answer) if isinstance(answer, Body) else answer
    began = datetime.fromisoformat(sent.row["started"])
    sent.row["ms"] = int((datetime.now(UTC) - began).total_seconds() * 1000)
    return sent.ended(result)[1]


def _key(id: int) -> str:
    return f"call-{id}"


def _id(key: str) -> int:
    return int(key.rpartition("-")[2])
