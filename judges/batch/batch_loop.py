"""Work on a batch campaign: collect calls, submit, poll, store answers."""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from django.conf import settings
from psycopg import Connection
from structlog.contextvars import bind_contextvars

from judges.batch import store
from judges.batch.endpoints import (
    BY_PLACE,
    ENDPOINTS,
    Endpoint,
    describe_error,
    read_refusal,
    status_of,
    was_not_created,
)
from judges.batch.store import LEASE_S, Collected, Out
from judges.costs.budget import Budget, BudgetExhausted
from judges.costs.prices import cost_bound, is_batched, price_for_judge
from judges.domain import refusals
from judges.domain.refusals import Failure, Meaning
from judges.domain.verdicts import NoVerdict
from judges.engine import leases, pairs
from judges.engine.answers import Decision, Sent, interpret_body, one_line
from judges.engine.calls import (
    NOBODYS,
    Caller,
    Cancelled,
    JudgeQuestion,
    Tools,
    describe_refusal,
    read_failure,
)
from judges.engine.leases import Claimed
from judges.engine.limits import SIT_OUT_S
from judges.engine.plan import Plan, read_prices
from judges.errors import ProviderError, Refused, Rejected, Unreachable
from judges.records import Body, Judge, ModelRequest, Reply, Turn

CHUNK = 64  # Pairs in memory at a time, and answers that are stored together.
TICK_S = 0.2
# Batches refused in a row before the campaign stands still: each refused one is split, and a fault
# of all of them would be refused call by call.
REFUSALS = 20
MISSING_LOOKS = 20  # After so many the answers of a batch that has ended will not come.
# Statuses below 500 with which a provider does not say that there is nothing left to cancel.
NOT_HEARD = (401, 402, 403, 408, 429)
LOST = (
    "no clear answer came when it was sent ({error}): whether the provider began it is not known, so it is not sent "
    "again by itself; it is looked for at each poll"
)
NAMELESS = (
    "; this provider shows no names of batches: one of this many calls from those minutes is taken for it, and it is "
    "certain only when it has ended, which takes up to a day"
)
LIKELY = (
    "no clear answer came when it was sent, and this provider shows no names of batches: the only batch under way "
    "of this many calls from those minutes is taken for it. That is certain when it has ended, which takes up to a "
    "day; until then it is not cancelled"
)
OTHERS = "the batch that was taken for it was somebody else's; it is looked for again"

Calls = dict[int, tuple[Sent, ModelRequest]]
Result = TypeVar("Result")

logger = logging.getLogger(__name__)


class WaitingForBatch(Cancelled):
    """The pair goes on when the batch is back."""


class NotThereYet(Exception):
    """The batch has ended, and its answers are not to be had yet."""


class CampaignTaken(Exception):
    """Another process works on the campaign."""


class Patient(Budget):
    """Budget whose calls are out for hours: a call that finds no room does not wait for them."""

    def _out(self, connection: Any) -> bool:
        # Reserved money of a batch comes back after hours, so a call without room is refused at once.
        return False


class Collector(Caller):
    """Asks as the engine does, and keeps what the next batches will hold in `collected`."""

    def __init__(self, tools: Tools, plan: Plan, *others: Any) -> None:
        # Batches have prices of their own, lower ones at most providers.
        prices = {judge.id: price_for_judge(judge, batch=True) for judge in plan.judges}
        super().__init__(tools, replace(plan, prices=prices), *others)
        self.collected: list[Collected] = []

    async def ask(self, claimed: Claimed, question: JudgeQuestion) -> Turn | NoVerdict:
        """Return the stored answer, or collect. WaitingForBatch, Cancelled, Budget..."""
        if question.slot in claimed.ended or not is_batched(question.judge):
            return await super().ask(claimed, question)
        following = self.next_try(claimed, question)
        if following is None:
            # Tried often enough: as in `Caller.ask`, the slot ends without a verdict.
            claimed.ended[question.slot] = NoVerdict("error")
            return NoVerdict("error")
        sent = await self.prepare(claimed, question, *following)
        if isinstance(sent, Turn):
            claimed.ended[question.slot] = sent
            return sent
        self.collected.append((sent, question.schema))
        raise WaitingForBatch


class BatchWorkerLoop:
    """The doors of engine.worker_loop.WorkerLoop, without a lease to renew."""

    def __init__(self, tools: Tools, plan: Plan) -> None:
        self.tools = tools
        self.held: list[Claimed] = []
        self.session: Connection[Any] | None = None  # The connection whose session holds the campaign's lock.
        self.is_taken = False
        self.budget = Patient(tools.writer, plan.campaign, f"batch:{plan.campaign}", LEASE_S)
        self.endpoints: dict[tuple[str, str, str], Endpoint] = {}
        self.cancelled: set[int] = set()
        self.refusals = 0
        self.out: list[Out] = []
        self.crowded: set[int] = set()
        self.missing: dict[int, int] = {}  # Looks at which the answers of an ended batch were not there, by batch.
        self.stopping = False
        self.spent = False
        self.state = "running"
        self.apply_plan(plan)

    def apply_plan(self, plan: Plan) -> None:
        self.plan = plan
        self.budget.apply_plan(plan)
        self.refusal = ""
        self.caller = Collector(
            self.tools, plan, self.budget, lambda: self.stopping or bool(self.refusal), self._refused
        )
        self.spent = False
        for account, limit in plan.limits.items():
            self.tools.limits.account(account).apply_limit(limit)

    def _refused(self, why: str) -> None:
        self.refusal = self.refusal or why

    async def run_time_slice(self) -> float | None:
        """Work until the next look; seconds until that. None: nothing is left."""
        self.is_taken = False
        try:
            return await self._work(time.monotonic() + settings.DRAIN_SECONDS)
        except CampaignTaken:
            return None
        finally:
            for endpoint in self.endpoints.values():
                await endpoint.close()
            # Clients belong to this time slice; another process may take the campaign next.
            self.endpoints.clear()
            if self.session is not None:
                values = [self.plan.campaign]
                await self.tools.writer.ask(lambda connection: connection.execute(store.LEAVE, values).rowcount)
                self.session = None

    async def _ask(self, question: Callable[[Connection[Any]], Result]) -> Result:
        """Ask while no other process is at the campaign. Raises CampaignTaken."""

        def ask(connection: Connection[Any]) -> Result:
            # A lock goes with its session: after a lost connection another process may have taken
            # the campaign. Then nothing is done to it any more, also once that process has left.
            if connection is not self.session:
                taken = not self.is_taken and connection.execute(store.TAKE, [self.plan.campaign]).fetchone()
                if taken != (True,):
                    self.session, self.is_taken = None, True
                    raise CampaignTaken
                self.session = connection
            return question(connection)

        return await self.tools.writer.ask(ask)

    async def _update(self, statement: str, **values: object) -> None:
        await self._ask(lambda connection: connection.execute(statement, values).rowcount)

    async def _shut_down(self) -> None:
        """End with the worker: everything stands in tables already."""
        self.stopping = True

    async def _work(self, until: float) -> float | None:
        while not self.stopping:
            self.state = await self.budget.look()  # as its admins last set it
            self.out = await self._ask(partial(store.open_batches, campaign=self.plan.campaign))
            if self.out:
                # Before anything new is formed: answers that are back may decide pairs, and make room at the provider.
                for batch in self.out:
                    await self._tend(batch)
                # Ended all of them: the pairs go on at once, or back where the campaign does not run.
                if not await self._ask(partial(store.open_batches, campaign=self.plan.campaign)):
                    continue
                if settings.BATCH_POLL_SECONDS > SIT_OUT_S:
                    return float(settings.BATCH_POLL_SECONDS)  # Others have the worker meanwhile.
                if not await self._rest(until):
                    return None if self.stopping else 0.0
            elif self.state != "running":
                await self._put_back()
                return None
            elif await self._ask(partial(store.form_batches, campaign=self.plan.campaign)):
                # Round again: the batches just formed are submitted as open ones.
                continue
            elif not await self._walk():
                return None
        return None

    async def _rest(self, until: float) -> bool:
        """Wait for the next look; False when the drain's or worker's time is over."""
        again = time.monotonic() + settings.BATCH_POLL_SECONDS
        while (now := time.monotonic()) < again:
            if self.stopping or now >= until:
                return False
            await asyncio.sleep(min(TICK_S, settings.BATCH_POLL_SECONDS))
        return True

    async def _walk(self) -> bool:
        """Take pairs as far as their evidence goes; False without pairs or money."""
        # Admins may have raised a limit since the last walk.
        self.spent = self.budget.exhausted = False
        await self._ask(partial(store.renew_leases, campaign=self.plan.campaign, holder=self.budget.holder))
        plan, waiting, after = self.plan, False, 0
        while chunk := await self._ask(partial(leases.running_pairs, plan=plan, after=after, n=CHUNK)):
            after = max(one.work for one in chunk)
            waiting = await self._judge(chunk) or waiting
        # New pairs after the running ones, so that what is begun ends first.
        claim = partial(leases.claim, plan=plan, lease=LEASE_S, n=CHUNK)
        while not self.spent and not self.stopping and (chunk := await self._ask(claim)):
            waiting = await self._judge(chunk) or waiting
        await self.budget.close()
        if waiting or self.stopping:
            return waiting
        if self.spent:
            await self._put_back()
            await self.budget.stop()
            return False
        await self._ask(partial(leases.finish_campaign, campaign=plan.campaign, collection=plan.collection))
        return False

    async def _judge(self, chunk: Sequence[Claimed]) -> bool:
        """Judge the pairs at the same time; whether any of them waits for a batch now."""
        waits = await asyncio.gather(*map(self._judge_pair, chunk))
        # Taken in one step, so that a call that is collected meanwhile is not lost.
        collected, self.caller.collected = self.caller.collected, []
        if collected:
            ids = await self._ask(partial(store.draw_ids, n=len(collected)))
            await self._ask(partial(store.add_calls, campaign=self.plan.campaign, collected=collected, ids=ids))
        if self.refusal:
            await self._pause(self.refusal)
        return any(waits)

    async def _judge_pair(self, claimed: Claimed) -> bool:
        bind_contextvars(**self.plan.log_fields(claimed.pair))  # for this task alone
        try:
            row = await pairs.judge_pair(self.caller, claimed)
        except WaitingForBatch:
            return True
        except BudgetExhausted:
            self.spent = True
            return False
        except Cancelled:
            if claimed.lease.waits:  # for an account that is asked at once
                await self._ask(partial(leases.postpone_pairs, held=[claimed]))
            return False
        except Exception as error:
            logger.exception("pair %s of %s cannot be judged", claimed.pair, self.plan.row.full_name)
            row = pairs.fail_pair(self.plan, claimed, error)
        await self.tools.writer.write(row)
        pairs.log_outcome(row)
        return False

    async def _tend(self, batch: Out) -> None:
        """Submit the batch, or look at it and take in its answers. What goes wrong is tried again at the next look."""
        try:
            endpoint = self._endpoint(batch.judge)
            if not batch.provider_id:
                await (self._submit(endpoint, batch) if batch.sent_at is None else self._adopt(endpoint, batch))
                return
            if self.state == "cancelled" and not batch.likely and batch.id not in self.cancelled:
                await self._cancel(endpoint, batch)
            look = await endpoint.look(batch.provider_id)
            if look.begun and not look.failure:
                self.refusals = 0
            if look.crowded and (self._is_beside_others(batch) or batch.calls == 1):
                # Another batch of the account fills its queue: this one waits until that has ended, and is not split.
                self.crowded.add(batch.id)
                await self._update(store.UNSENT, batch=batch.id)
                await self._trouble(batch, look.failure)
            elif look.failure:
                # It was refused as a whole, so it may be sent again.
                await self._update(store.UNSENT, batch=batch.id)
                kind = Refused if look.of_account else Rejected
                await self._refuse(batch, kind(f"{batch.judge.provider}: {look.failure}", status=400))
            elif look.ended:
                await self._store_batch_answers(endpoint, batch)
        except NotThereYet as error:
            await self._trouble(batch, str(error))
        except Exception as error:
            problem = describe_error(error, batch.judge.provider)
            await self._trouble(batch, problem)
            known = error if isinstance(error, ProviderError) else read_refusal(error)
            if known is not None and not known.retry and is_of_account(known):
                await self._pause(describe_refusal(batch.judge, problem))

    async def _cancel(self, endpoint: Endpoint, batch: Out) -> None:
        """Ask the provider to end the batch, again at each look until it heard."""
        try:
            await endpoint.cancel(batch.provider_id)
        except Exception as error:
            # A provider that did not clearly refuse the request may still be able to cancel the batch.
            status = status_of(error)
            if status is None or status >= 500 or status in NOT_HEARD:
                await self._trouble(batch, describe_error(error, batch.judge.provider))
                return
        self.cancelled.add(batch.id)

    def _is_beside_others(self, batch: Out) -> bool:
        """Return whether other batches of the account are out, whose end may make room."""
        return any(
            one.id != batch.id and one.provider_id and one.judge.account == batch.judge.account for one in self.out
        )

    async def _trouble(self, batch: Out, problem: str) -> None:
        """Say why nothing goes on with the batch for the moment."""
        logger.warning("batch %s: %s", batch.name, one_line(problem))
        await self._update(store.PROBLEM, batch=batch.id, problem=one_line(problem))

    async def _submit(self, endpoint: Endpoint, batch: Out) -> None:
        """Send the batch once: unless surely refused, never again without an admin."""
        if self.state != "running":
            await self._ask(partial(store.delete_unsent_batch, batch=batch.id))
            return
        if batch.id in self.crowded and self._is_beside_others(batch):
            return
        calls = await self._ask(partial(store.pending_calls, batch=batch.id))
        try:
            calls = await self._at_current_prices(calls)
        except BudgetExhausted:
            # Its pairs are asked about again at the price of now, which ends the campaign by its budget.
            for call, _request in calls.values():
                if call.row["calls"]:
                    self.budget.give_back(call.row["usd"])
            await self._ask(partial(store.delete_unsent_batch, batch=batch.id))
            return
        sent = False
        try:
            # A call's key holds the batch's name, by which a batch without one of its own is known again.
            keyed = [(f"{batch.name}-{id}", request) for id, (_, request) in calls.items()]
            prepared = await endpoint.prepare(batch.name, keyed)
            await self._update(store.SENT, batch=batch.id)
            sent = True
            found = await endpoint.create(batch.name, prepared)
        except Exception as error:
            # Whether the provider has it is unknown. Sending again could pay twice, so an admin decides (`send-again`).
            if sent and not was_not_created(error):
                problem = one_line(describe_error(error, batch.judge.provider))
                await self._trouble(batch, _describe_unconfirmed(batch, problem))
                return
            await self._update(store.UNSENT, batch=batch.id)
            refusal = read_refusal(error, batch.judge.provider)
            if refusal is None or refusal.retry:
                raise
            await self._refuse(batch, refusal)
            return
        # True whoever has the campaign now: by it alone some providers' batches are found again.
        values = {"batch": batch.id, "provider": found, "problem": ""}
        await self.tools.writer.ask(lambda connection: connection.execute(store.SUBMITTED, values).rowcount)

    async def _at_current_prices(self, calls: Calls) -> Calls:
        """Return calls at the prices that hold as their batch leaves: it may have waited. Raises BudgetExhausted."""
        self.caller.current = current = await asyncio.to_thread(read_prices, self.plan, batch=True)
        changed = dict[int, Collected]()
        for id, (sent, request) in calls.items():
            price = current.prices.get(sent.judge.id, sent.price)
            if price == sent.price:
                continue
            row = sent.row
            row["bound"] = cost_bound(request.judge, request.prompt, request.schema, price)
            if row["calls"]:
                self.budget.give_back(row["usd"])
                row |= {"usd": 0.0, "calls": 0}
                row |= {"usd": await self.budget.reserve(row["bound"]), "calls": 1}
            table = current.tables.get((sent.judge.provider, sent.judge.base_url), {})
            changed[id] = replace(sent, price=price, table=table), request.schema
        if changed:
            await self._ask(partial(store.change_calls, changed=changed))
        return calls | {id: (sent, calls[id][1]) for id, (sent, _schema) in changed.items()}

    async def _adopt(self, endpoint: Endpoint, batch: Out) -> None:
        """Look at the provider for a batch that left and may not have arrived."""
        assert batch.sent_at is not None
        found = await endpoint.find(batch.name, batch.calls, batch.sent_at)
        if found is not None:
            await self._update(store.SUBMITTED, batch=batch.id, provider=found, problem="")
            return
        fits = await endpoint.fits(batch.calls, batch.sent_at, await self._ask(store.known_provider_ids))
        if fits is not None:
            await self._update(store.SUBMITTED, batch=batch.id, provider=fits, problem=LIKELY)
        elif self.state == "cancelled":
            error = Unreachable(f"{batch.judge.provider}: the campaign was cancelled before its batch was found")
            # Billed as far as anybody knows: the provider may have worked on it.
            error.billed = True
            await self._all_failed(batch, error)
        else:
            await self._update(store.MISSING, batch=batch.id, problem=_describe_unconfirmed(batch, "the process ended"))

    async def _refuse(self, batch: Out, error: ProviderError) -> None:
        """Split a refused batch; a refusal of the account or of all ends the work."""
        why = one_line(str(error))
        logger.warning("batch %s was refused: %s", batch.name, why)
        self.refusals += 1
        if is_of_account(error) or self.refusals >= REFUSALS:
            # A fault of the account would refuse both halves, and theirs, down to single calls.
            await self._pause(describe_refusal(batch.judge, why))
        elif not await self._ask(partial(store.split_batch, batch=batch, campaign=self.plan.campaign, problem=why)):
            await self._all_failed(batch, error)

    async def _pause(self, why: str) -> None:
        """Let the campaign stand still: what was not sent goes back, and whoever mends the account resumes it."""
        why = one_line(why)
        await self._update(leases.PAUSE, campaign=self.plan.campaign, starts=self.plan.row.starts, why=why)
        self.state, self.refusals = "paused", 0

    async def _store_batch_answers(self, endpoint: Endpoint, batch: Out) -> None:
        answers: dict[int, Body | ProviderError] = {}
        evidence = BatchEvidence()
        ids = await self._ask(partial(store.pending_call_ids, batch=batch.id, n=batch.calls))
        async for key, answer in self._answers(endpoint, batch):
            # The answers name another batch: this was a batch of the same size that somebody else sent.
            if batch.likely and key.rpartition("-")[0] != batch.name:
                await self._update(store.UNLINKED, batch=batch.id, problem=OTHERS)
                return
            id = _call_of(key, batch, ids)
            if id is None:
                logger.warning("batch %s: an answer is to none of its calls: %s", batch.name, one_line(key)[:100])
                continue
            answers[id] = answer
            if len(answers) == CHUNK:
                await self._store(batch, answers, evidence)
                answers = {}
        await self._store(batch, answers, evidence)
        await self._weigh(batch, evidence)
        # Whatever is left in the batch got no answer.
        await self._all_failed(batch, Unreachable(f"{batch.judge.provider}: no answer in its batch"))

    async def _answers(self, endpoint: Endpoint, batch: Out) -> AsyncIterator[tuple[str, Body | ProviderError]]:
        """Yield the answers. NotThereYet: some have the file later than they say."""
        try:
            async for found in endpoint.answers(batch.provider_id):
                yield found
        except Exception as error:
            if status_of(error) != 404 or self.missing.get(batch.id, 0) >= MISSING_LOOKS:
                raise
            self.missing[batch.id] = self.missing.get(batch.id, 0) + 1
            raise NotThereYet(describe_error(error, batch.judge.provider)) from error

    async def _all_failed(self, batch: Out, error: ProviderError) -> None:
        """Calls that brought nothing are tried again, or their pairs fail, as the error says; the batch is over."""
        while ids := await self._ask(partial(store.pending_call_ids, batch=batch.id, n=CHUNK)):
            await self._store(batch, dict.fromkeys(ids, error))
        await self._update(store.ENDED, batch=batch.id)

    async def _store(
        self,
        batch: Out,
        answers: Mapping[int, Body | ProviderError],
        evidence: "BatchEvidence | None" = None,
        uncounted: Collection[int] = (),
    ) -> None:
        """Store answers; with `evidence` all but refusals, which it takes. Those of `uncounted` calls are nobody's."""
        calls = await self._ask(partial(store.pending_calls, batch=batch.id, ids=list(answers)))
        attempts, ids = [], []
        for id, (sent, _) in calls.items():
            answer = answers[id]
            result = await interpret_body(sent.judge, answer) if isinstance(answer, Body) else answer
            # As if it had come at once; it took as long as the batch.
            began = datetime.fromisoformat(sent.row["started"])
            sent.row["ms"] = int((datetime.now(UTC) - began).total_seconds() * 1000)
            decision, attempted = sent.ended(result)
            if evidence is not None and evidence.takes(id, sent, result, decision):
                continue
            if id in uncounted:
                sent.row.update(NOBODYS)
            attempts.append(attempted)
            ids.append(id)
        shard = self.tools.writer.shard
        await self._ask(partial(store.store_answers, attempts=attempts, ids=ids, shard=shard))

    async def _weigh(self, batch: Out, evidence: "BatchEvidence") -> None:
        """Decide of whom the refusals of a batch speak, as of single calls; store."""
        trials, found, uncounted = self.tools.limits.trials, "", set[int]()
        for judge in evidence.judges.values():
            # In the order of the batch's rows: providers give them in any.
            answers = [failure for _id, failure in sorted(evidence.answers[judge.id].items())]
            doubt = (self.plan.start, judge.id)
            if None in answers:
                # Its calls left together: that one of them was answered says that the account answers.
                useless = refusals.unusable_row(answers, trials.failures.get(doubt, ()))
                if useless:
                    found = found or refusals.describe(Meaning.UNUSABLE, judge.name, judge.account_name, useless)
                trials.answered(doubt, time.time())
                continue
            for failure in [failure for failure in answers if failure is not None][-refusals.KEPT :]:
                await trials.failed(doubt, failure)
            meaning = trials.meaning(doubt, self.caller.accounts)
            if meaning in (Meaning.ACCOUNT, Meaning.UNUSABLE):
                found = found or refusals.describe(meaning, judge.name, judge.account_name, trials.failures[doubt])
                uncounted |= {id for id, (sent, _) in evidence.refused.items() if sent.judge.id == judge.id}
        for id, (sent, error) in evidence.refused.items():
            if is_of_account(error):
                found = found or describe_refusal(sent.judge, str(error))
                uncounted.add(id)
        if found:
            await self._pause(found)
        refused = {id: error for id, (_, error) in evidence.refused.items()}
        for at in range(0, len(refused), CHUNK):
            await self._store(batch, dict(list(refused.items())[at : at + CHUNK]), uncounted=uncounted)
        pairs_back = [sent.row["pair"] for id, (sent, _) in evidence.refused.items() if id in uncounted]
        await self._update(store.FORGIVE, campaign=self.plan.campaign, pairs=pairs_back)

    async def _put_back(self) -> None:
        await self.budget.close()
        await self._ask(partial(store.put_back, campaign=self.plan.campaign, holder=self.budget.holder))

    def _endpoint(self, judge: Judge) -> Endpoint:
        if judge.account not in self.endpoints:
            self.endpoints[judge.account] = ENDPOINTS[judge.preset.wire](judge)
        return self.endpoints[judge.account]


@dataclass(slots=True)
class BatchEvidence:
    """What the answers of a batch say of its judges, by their ids."""

    # Calls that wait until it is known whose refusal it is.
    refused: dict[int, tuple[Sent, ProviderError]] = field(default_factory=dict)
    judges: dict[int, Judge] = field(default_factory=dict)
    # What was wrong with each answer, by judge and call; None: it is usable.
    answers: dict[int, dict[int, Failure | None]] = field(default_factory=lambda: defaultdict(dict))

    def takes(self, id: int, sent: Sent, result: Reply | ProviderError, decision: Decision) -> bool:
        """Note an answer; return whether it is a refusal, which is kept back."""
        judge = self.judges.setdefault(sent.judge.id, sent.judge)
        if isinstance(decision, Turn):
            self.answers[judge.id][id] = None
        elif failure := read_failure(sent.row["pair"], result, sent.row, 0.0):
            self.answers[judge.id][id] = replace(failure, after=0.0)
        if isinstance(result, Rejected):
            self.refused[id] = sent, result
            return True
        return False


def _call_of(key: str, batch: Out, ids: Sequence[int]) -> int | None:
    """Return the call that an answer's key means; None for one that is not ours."""
    name, _, number = key.rpartition("-")
    if name == batch.name and number.isdecimal():
        return int(number)
    # Without keys the order counts, as long as all calls of the batch wait still.
    place = key.removeprefix(BY_PLACE)
    if key.startswith(BY_PLACE) and place.isdecimal() and len(ids) == batch.calls and int(place) < len(ids):
        return ids[int(place)]
    return None


def _describe_unconfirmed(batch: Out, error: str) -> str:
    """Describe a batch of which it is unknown whether the provider began it."""
    return LOST.format(error=error[:200]) + (NAMELESS if batch.judge.preset.wire == "messages" else "")


def is_of_account(error: ProviderError) -> bool:
    """Return whether the provider refuses the account (key, quota) and not this batch: others would be refused, too."""
    return isinstance(error, Refused) or (isinstance(error, Rejected) and error.status is None)
