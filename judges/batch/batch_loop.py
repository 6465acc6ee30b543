"""Worker loop of a batch campaign: collect calls, submit batches, poll them, store their answers."""

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
from judges.batch.store import LEASE_S, Collected, OpenBatch
from judges.costs.judge_records import read_prices
from judges.costs.prices import cost_bound, is_batched, price_for_judge
from judges.domain import refusals
from judges.domain.refusals import Failure, Meaning
from judges.domain.verdicts import NoVerdict
from judges.engine import leases, pairs
from judges.engine.answers import Decision, SentCall, interpret_body, one_line
from judges.engine.budget import Budget, BudgetExhausted
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
from judges.engine.plan import Plan
from judges.errors import ProviderError, Refused, Rejected, Unreachable
from judges.records import Body, Judge, ModelRequest, Reply, Turn

CHUNK = 64  # Pairs in memory at a time, and answers that are stored together.
TICK_S = 0.2
# Batches refused in a row before the campaign is paused: each refused one is split, and a fault that
# all of them share would be refused call by call.
REFUSALS = 20
MISSING_LOOKS = 20  # Polls after which the missing answers of an ended batch are given up.
# Statuses below 500 that do not mean that nothing is left to cancel.
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
OTHERS = "the batch that was taken for it belongs to another client; it is looked for again"

Calls = dict[int, tuple[SentCall, ModelRequest]]
Result = TypeVar("Result")

logger = logging.getLogger(__name__)


class WaitingForBatch(Cancelled):
    """The pair continues once its batch has ended."""


class NotThereYet(Exception):
    """The batch has ended, but its answers are not available yet."""


class CampaignTaken(Exception):
    """Another process works on the campaign."""


class BatchBudget(Budget):
    """Budget of batches, whose reserved money returns after hours: a call that it does not cover is refused at once."""

    def _out(self, connection: Any) -> bool:
        return False


class Collector(Caller):
    """Caller that collects the calls of the next batches in `collected` instead of sending them."""

    def __init__(self, tools: Tools, plan: Plan, *others: Any) -> None:
        # Batches have prices of their own, lower ones at most providers.
        prices = {judge.id: price_for_judge(judge, batch=True) for judge in plan.judges}
        super().__init__(tools, replace(plan, prices=prices), *others)
        self.collected: list[Collected] = []

    async def ask(self, claimed: Claimed, question: JudgeQuestion) -> Turn | NoVerdict:
        """Return the stored answer, or collect the call. Raises WaitingForBatch, Cancelled, BudgetExhausted."""
        if question.slot in claimed.ended or not is_batched(question.judge):
            return await super().ask(claimed, question)
        next_try = self.next_try(claimed, question)
        if next_try is None:
            # The tries are used up: as in `Caller.ask`, the slot ends without a verdict.
            claimed.ended[question.slot] = NoVerdict("error")
            return NoVerdict("error")
        sent = await self.prepare(claimed, question, *next_try)
        if isinstance(sent, Turn):
            claimed.ended[question.slot] = sent
            return sent
        self.collected.append((sent, question.schema))
        raise WaitingForBatch


class BatchWorkerLoop:
    """Batches of one campaign: the interface of engine.worker_loop.WorkerLoop, without leases to renew."""

    def __init__(self, tools: Tools, plan: Plan) -> None:
        self.tools = tools
        self.claimed_pairs: list[Claimed] = []  # Always empty: no pair stays in memory between time slices.
        self.session: Connection[Any] | None = None  # The connection whose session holds the campaign's lock.
        self.is_taken = False
        self.budget = BatchBudget(tools.writer, plan.campaign, f"batch:{plan.campaign}", LEASE_S)
        self.endpoints: dict[tuple[str, str, str], Endpoint] = {}
        self.cancelled: set[int] = set()  # Ids of batches whose providers have accepted the request to cancel them.
        self.refusals = 0
        self.open_batches: list[OpenBatch] = []
        self.crowded: set[int] = set()  # Ids of batches that wait until another batch of their account has ended.
        self.missing: dict[int, int] = {}  # Polls at which an ended batch had no answers yet, by batch.
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
        """Work until only open batches are left; return the seconds until their next poll, None if none is open."""
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

    async def _work(self, slice_end: float) -> float | None:
        """Do what the campaign needs, round by round.

        1. Poll the open batches: answers that are back may decide pairs, and make room at the provider.
        2. Put the pairs back if the campaign does not run.
        3. Form batches of the calls that wait; the next round submits them.
        4. Judge the pairs as far as their answers go, which collects more calls.
        """
        while not self.stopping:
            self.state = await self.budget.look()  # as its admins last set it
            self.open_batches = await self._ask(partial(store.open_batches, campaign=self.plan.campaign))
            if self.open_batches:
                for batch in self.open_batches:
                    await self._tend(batch)
                # If all of them have ended, the pairs continue at once, or are put back.
                if not await self._ask(partial(store.open_batches, campaign=self.plan.campaign)):
                    continue
                if settings.BATCH_POLL_SECONDS > SIT_OUT_S:
                    return float(settings.BATCH_POLL_SECONDS)  # the worker is free for others meanwhile
                next_poll = time.monotonic() + settings.BATCH_POLL_SECONDS
                while (now := time.monotonic()) < next_poll and not self.stopping:
                    if now >= slice_end:
                        return 0.0
                    await asyncio.sleep(min(TICK_S, settings.BATCH_POLL_SECONDS))
            elif self.state != "running":
                await self._put_back()
                return None
            elif await self._ask(partial(store.form_batches, campaign=self.plan.campaign)):
                continue
            elif not await self._judge_pairs():
                return None
        return None

    async def _ask(self, question: Callable[[Connection[Any]], Result]) -> Result:
        """Run a statement while no other process works on the campaign. Raises CampaignTaken."""

        def ask(connection: Connection[Any]) -> Result:
            # A lock ends with its session: after a lost connection another process may have taken
            # the campaign. This slice does nothing to it then, even after that process has left.
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
        """End with the worker: everything is stored in tables already."""
        self.stopping = True

    async def _judge_pairs(self) -> bool:
        """Judge all pairs as far as their answers go; return whether any waits for a batch.

        Running pairs come before new ones, so that those that were begun end first. Without a waiting pair the
        campaign is finished, or stopped by its budget.
        """
        # Admins may have raised a limit since the last time.
        self.spent = self.budget.exhausted = False
        await self._ask(partial(store.renew_leases, campaign=self.plan.campaign, holder=self.budget.holder))
        plan, is_waiting, after = self.plan, False, 0
        while chunk := await self._ask(partial(leases.running_pairs, plan=plan, after=after, n=CHUNK)):
            after = max(claimed.work for claimed in chunk)
            is_waiting = await self._judge_chunk(chunk) or is_waiting
        claim = partial(leases.claim, plan=plan, lease=LEASE_S, n=CHUNK)
        while not self.spent and not self.stopping and (chunk := await self._ask(claim)):
            is_waiting = await self._judge_chunk(chunk) or is_waiting
        await self.budget.close()
        if is_waiting or self.stopping:
            return is_waiting
        if self.spent:
            await self._put_back()
            await self.budget.stop()
            return False
        await self._ask(partial(leases.finish_campaign, campaign=plan.campaign, collection=plan.collection))
        return False

    async def _judge_chunk(self, chunk: Sequence[Claimed]) -> bool:
        """Judge the pairs at the same time; return whether any of them waits for a batch now."""
        results = await asyncio.gather(*map(self._judge_pair, chunk))
        # Emptied in one step, so that a call that is collected meanwhile is not lost.
        collected, self.caller.collected = self.caller.collected, []
        if collected:
            ids = await self._ask(partial(store.draw_ids, n=len(collected)))
            await self._ask(partial(store.add_calls, campaign=self.plan.campaign, collected=collected, ids=ids))
        if self.refusal:
            await self._pause(self.refusal)
        return any(results)

    async def _judge_pair(self, claimed: Claimed) -> bool:
        """Judge one pair and store its outcome; return whether it waits for a batch."""
        bind_contextvars(**self.plan.log_fields(claimed.pair))  # for this task alone
        try:
            row = await pairs.judge_pair(self.caller, claimed)
        except WaitingForBatch:
            return True
        except BudgetExhausted:
            self.spent = True
            return False
        except Cancelled:
            if claimed.lease.waits:  # for the account of a judge without batches
                await self._ask(partial(leases.postpone_pairs, pairs=[claimed]))
            return False
        except Exception as error:
            logger.exception("pair %s of %s cannot be judged", claimed.pair, self.plan.row.full_name)
            row = pairs.fail_pair(self.plan, claimed, error)
        await self.tools.writer.write(row)
        pairs.log_outcome(row)
        return False

    async def _tend(self, batch: OpenBatch) -> None:
        """Take one step with a batch. An error is noted, and the step is tried again at the next poll.

        1. Submit a batch that was not sent; look for one that was sent and has no id.
        2. Ask the provider to cancel it if the campaign was cancelled.
        3. Read its state. A refused batch waits for others of its account, or is split; an ended one gives its answers.
        """
        try:
            if batch.judge.account not in self.endpoints:
                self.endpoints[batch.judge.account] = ENDPOINTS[batch.judge.preset.wire](batch.judge)
            endpoint = self.endpoints[batch.judge.account]
            if not batch.provider_id:
                await (self._submit(endpoint, batch) if batch.sent_at is None else self._adopt(endpoint, batch))
                return
            if self.state == "cancelled" and not batch.likely and batch.id not in self.cancelled:
                await self._cancel(endpoint, batch)
            status = await endpoint.look(batch.provider_id)
            if status.begun and not status.failure:
                self.refusals = 0
            if status.crowded and (self._is_beside_others(batch) or batch.calls == 1):
                # Another batch of the account fills its queue: this one waits until that has ended, and is not split.
                self.crowded.add(batch.id)
                await self._update(store.UNSENT, batch=batch.id)
                await self._note_problem(batch, status.failure)
            elif status.failure:
                # The batch was refused as a whole, so it may be sent again.
                await self._update(store.UNSENT, batch=batch.id)
                kind = Refused if status.of_account else Rejected
                await self._refuse(batch, kind(f"{batch.judge.provider}: {status.failure}", status=400))
            elif status.ended:
                await self._store_batch_answers(endpoint, batch)
        except NotThereYet as error:
            await self._note_problem(batch, str(error))
        except Exception as error:
            problem = describe_error(error, batch.judge.provider)
            await self._note_problem(batch, problem)
            refusal = error if isinstance(error, ProviderError) else read_refusal(error)
            if refusal is not None and not refusal.retry and is_of_account(refusal):
                await self._pause(describe_refusal(batch.judge, problem))

    async def _cancel(self, endpoint: Endpoint, batch: OpenBatch) -> None:
        """Ask the provider to cancel the batch, at each poll until the request has been received."""
        try:
            await endpoint.cancel(batch.provider_id)
        except Exception as error:
            # A provider that did not clearly refuse the request may still be able to cancel the batch.
            status = status_of(error)
            if status is None or status >= 500 or status in NOT_HEARD:
                await self._note_problem(batch, describe_error(error, batch.judge.provider))
                return
        self.cancelled.add(batch.id)

    def _is_beside_others(self, batch: OpenBatch) -> bool:
        """Return whether the provider has other batches of the account, whose end may make room."""
        return any(
            other.id != batch.id and other.provider_id and other.judge.account == batch.judge.account
            for other in self.open_batches
        )

    async def _note_problem(self, batch: OpenBatch, problem: str) -> None:
        """Log and store why the batch makes no progress for the moment."""
        logger.warning("batch %s: %s", batch.name, one_line(problem))
        await self._update(store.PROBLEM, batch=batch.id, problem=one_line(problem))

    async def _submit(self, endpoint: Endpoint, batch: OpenBatch) -> None:
        """Send the batch to the provider.

        Unless the provider certainly did not create it, only an admin may send it again: it could be paid for twice.
        """
        if self.state != "running":
            await self._ask(partial(store.delete_unsent_batch, batch=batch.id))
            return
        if batch.id in self.crowded and self._is_beside_others(batch):
            return
        calls = await self._ask(partial(store.pending_calls, batch=batch.id))
        try:
            calls = await self._at_current_prices(calls)
        except BudgetExhausted:
            # Its pairs are judged again at the current price, which ends the campaign by its budget.
            for call, _request in calls.values():
                if call.row["calls"]:
                    self.budget.give_back(call.row["usd"])
            await self._ask(partial(store.delete_unsent_batch, batch=batch.id))
            return
        is_sent = False
        try:
            # A call's key contains the batch's name, which identifies a batch at providers that store no names.
            requests = [(f"{batch.name}-{id}", request) for id, (_, request) in calls.items()]
            prepared = await endpoint.prepare(batch.name, requests)
            await self._update(store.SENT, batch=batch.id)
            is_sent = True
            provider_id = await endpoint.create(batch.name, prepared)
        except Exception as error:
            # It is unknown whether the provider has the batch: an admin decides (`send-again`).
            if is_sent and not was_not_created(error):
                problem = one_line(describe_error(error, batch.judge.provider))
                await self._note_problem(batch, _describe_unconfirmed(batch, problem))
                return
            await self._update(store.UNSENT, batch=batch.id)
            refusal = read_refusal(error, batch.judge.provider)
            if refusal is None or refusal.retry:
                raise
            await self._refuse(batch, refusal)
            return
        # Stored even if another process has the campaign by now: some providers' batches are found by it alone.
        values = {"batch": batch.id, "provider": provider_id, "problem": ""}
        await self.tools.writer.ask(lambda connection: connection.execute(store.SUBMITTED, values).rowcount)

    async def _at_current_prices(self, calls: Calls) -> Calls:
        """Return the calls at the current prices, which may have changed while they waited. Raises BudgetExhausted."""
        self.caller.current = current = await asyncio.to_thread(read_prices, self.plan.prices, batch=True)
        changed_calls = dict[int, Collected]()
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
            changed_calls[id] = replace(sent, price=price, table=table), request.schema
        if changed_calls:
            await self._ask(partial(store.change_calls, calls=changed_calls))
        return calls | {id: (sent, calls[id][1]) for id, (sent, _schema) in changed_calls.items()}

    async def _adopt(self, endpoint: Endpoint, batch: OpenBatch) -> None:
        """Look for a batch that was sent without a clear answer among the provider's batches."""
        assert batch.sent_at is not None
        provider_id = await endpoint.find(batch.name, batch.calls, batch.sent_at)
        if provider_id is not None:
            await self._update(store.SUBMITTED, batch=batch.id, provider=provider_id, problem="")
            return
        likely_id = await endpoint.fits(batch.calls, batch.sent_at, await self._ask(store.known_provider_ids))
        if likely_id is not None:
            await self._update(store.SUBMITTED, batch=batch.id, provider=likely_id, problem=LIKELY)
        elif self.state == "cancelled":
            error = Unreachable(f"{batch.judge.provider}: the campaign was cancelled before its batch was found")
            # Billed, as far as we know: the provider may have worked on it.
            error.billed = True
            await self._fail_rest(batch, error)
        else:
            await self._update(store.MISSING, batch=batch.id, problem=_describe_unconfirmed(batch, "the process ended"))

    async def _refuse(self, batch: OpenBatch, error: ProviderError) -> None:
        """Split a refused batch; pause the campaign if its account is refused, or REFUSALS batches in a row."""
        reason = one_line(str(error))
        logger.warning("batch %s was refused: %s", batch.name, reason)
        self.refusals += 1
        if is_of_account(error) or self.refusals >= REFUSALS:
            # A fault of the account would refuse both halves, and theirs, down to single calls.
            await self._pause(describe_refusal(batch.judge, reason))
        elif not await self._ask(partial(store.split_batch, batch=batch, campaign=self.plan.campaign, problem=reason)):
            await self._fail_rest(batch, error)

    async def _pause(self, reason: str) -> None:
        """Pause the campaign until the account has been corrected; calls that were not sent are put back."""
        values = {"campaign": self.plan.campaign, "starts": self.plan.row.starts, "why": one_line(reason)}
        await self._update(leases.PAUSE, **values)
        self.state, self.refusals = "paused", 0

    async def _store_batch_answers(self, endpoint: Endpoint, batch: OpenBatch) -> None:
        """Store the answers of an ended batch, and end it.

        Answers are stored in chunks as they come; refusals are kept back until all answers are here, which show whether
        they concern the calls or the account. Calls without an answer fail. Raises NotThereYet.
        """
        answers: dict[int, Body | ProviderError] = {}
        evidence = BatchEvidence()
        ids = await self._ask(partial(store.pending_call_ids, batch=batch.id, n=batch.calls))
        async for key, answer in self._answers(endpoint, batch):
            # The answers name another batch: this one, of the same size, was sent by another client of the account.
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
        await self._fail_rest(batch, Unreachable(f"{batch.judge.provider}: no answer in its batch"))

    async def _answers(self, endpoint: Endpoint, batch: OpenBatch) -> AsyncIterator[tuple[str, Body | ProviderError]]:
        """Yield the answers. Raises NotThereYet: some providers have the file only after they report the end."""
        try:
            async for answer in endpoint.answers(batch.provider_id):
                yield answer
        except Exception as error:
            if status_of(error) != 404 or self.missing.get(batch.id, 0) >= MISSING_LOOKS:
                raise
            self.missing[batch.id] = self.missing.get(batch.id, 0) + 1
            raise NotThereYet(describe_error(error, batch.judge.provider)) from error

    async def _fail_rest(self, batch: OpenBatch, error: ProviderError) -> None:
        """Store the error for all calls without an answer, and end the batch."""
        while ids := await self._ask(partial(store.pending_call_ids, batch=batch.id, n=CHUNK)):
            await self._store(batch, dict.fromkeys(ids, error))
        await self._update(store.ENDED, batch=batch.id)

    async def _store(
        self,
        batch: OpenBatch,
        answers: Mapping[int, Body | ProviderError],
        evidence: "BatchEvidence | None" = None,
        uncounted: Collection[int] = (),
    ) -> None:
        """Store answers as attempts; with `evidence`, all but refusals, which it keeps back.

        The answers to `uncounted` calls are stored as no outcome of their questions.
        """
        calls = await self._ask(partial(store.pending_calls, batch=batch.id, ids=list(answers)))
        attempts, ids = [], []
        for id, (sent, _) in calls.items():
            answer = answers[id]
            result = await interpret_body(sent.judge, answer) if isinstance(answer, Body) else answer
            # The duration of a call is that of its batch.
            began = datetime.fromisoformat(sent.row["started"])
            sent.row["ms"] = int((datetime.now(UTC) - began).total_seconds() * 1000)
            decision, attempt = sent.ended(result)
            if evidence is not None and evidence.takes(id, sent, result, decision):
                continue
            if id in uncounted:
                sent.row.update(NOBODYS)
            attempts.append(attempt)
            ids.append(id)
        shard = self.tools.writer.shard
        await self._ask(partial(store.store_answers, attempts=attempts, ids=ids, shard=shard))

    async def _weigh(self, batch: OpenBatch, evidence: "BatchEvidence") -> None:
        """Decide whether the refusals of a batch concern its calls or the account, by the rules of single calls.

        1. For each judge with a usable answer: too many unusable ones pause the campaign.
        2. For each judge without one: its failures show whether the account, or the judge, is at fault.
        3. Store the refusals. Those of the account are no outcome of their calls, whose pairs are tried again.
        """
        trials, reason, uncounted = self.tools.limits.trials, "", set[int]()
        for judge in evidence.judges.values():
            # Ordered as the batch's rows: providers return the answers in any order.
            answers = [failure for _id, failure in sorted(evidence.answers[judge.id].items())]
            doubt = (self.plan.start, judge.id)
            if None in answers:
                # The calls were sent together: one usable answer shows that the account answers.
                unusable = refusals.unusable_row(answers, trials.failures.get(doubt, ()))
                if unusable:
                    reason = reason or refusals.describe(Meaning.UNUSABLE, judge.name, judge.account_name, unusable)
                trials.answered(doubt, time.time())
                continue
            for failure in [failure for failure in answers if failure is not None][-refusals.KEPT :]:
                await trials.failed(doubt, failure)
            meaning = trials.meaning(doubt, self.caller.accounts)
            if meaning in (Meaning.ACCOUNT, Meaning.UNUSABLE):
                reason = reason or refusals.describe(meaning, judge.name, judge.account_name, trials.failures[doubt])
                uncounted |= {id for id, (sent, _) in evidence.refused.items() if sent.judge.id == judge.id}
        for id, (sent, error) in evidence.refused.items():
            if is_of_account(error):
                reason = reason or describe_refusal(sent.judge, str(error))
                uncounted.add(id)
        if reason:
            await self._pause(reason)
        refused = [(id, error) for id, (_, error) in evidence.refused.items()]
        for start in range(0, len(refused), CHUNK):
            await self._store(batch, dict(refused[start : start + CHUNK]), uncounted=uncounted)
        pair_ids = [sent.row["pair"] for id, (sent, _) in evidence.refused.items() if id in uncounted]
        await self._update(store.FORGIVE, campaign=self.plan.campaign, pairs=pair_ids)

    async def _put_back(self) -> None:
        await self.budget.close()
        await self._ask(partial(store.put_back, campaign=self.plan.campaign, holder=self.budget.holder))


@dataclass(slots=True)
class BatchEvidence:
    """What the answers of a batch show about its judges."""

    # Refused calls, by id, until it is known whether the refusal concerns the call or the account.
    refused: dict[int, tuple[SentCall, ProviderError]] = field(default_factory=dict)
    judges: dict[int, Judge] = field(default_factory=dict)  # By their ids.
    # The failure that each answer is, by judge and call; None: the answer is usable.
    answers: dict[int, dict[int, Failure | None]] = field(default_factory=lambda: defaultdict(dict))

    def takes(self, id: int, sent: SentCall, result: Reply | ProviderError, decision: Decision) -> bool:
        """Note an answer; return whether it is a refusal, which is not to be stored yet."""
        judge = self.judges.setdefault(sent.judge.id, sent.judge)
        if isinstance(decision, Turn):
            self.answers[judge.id][id] = None
        elif failure := read_failure(sent.row["pair"], result, sent.row, 0.0):
            self.answers[judge.id][id] = replace(failure, after=0.0)
        if isinstance(result, Rejected):
            self.refused[id] = sent, result
            return True
        return False


def _call_of(key: str, batch: OpenBatch, ids: Sequence[int]) -> int | None:
    """Return the id of the call that an answer's key names; None if it is no call of the batch."""
    name, _, number = key.rpartition("-")
    if name == batch.name and number.isdecimal():
        return int(number)
    # Without keys the position counts, as long as all calls of the batch still wait.
    position = key.removeprefix(BY_PLACE)
    if key.startswith(BY_PLACE) and position.isdecimal() and len(ids) == batch.calls and int(position) < len(ids):
        return ids[int(position)]
    return None


def _describe_unconfirmed(batch: OpenBatch, error: str) -> str:
    """Return the problem of a batch of which it is unknown whether the provider created it."""
    return LOST.format(error=error[:200]) + (NAMELESS if batch.judge.preset.wire == "messages" else "")


def is_of_account(error: ProviderError) -> bool:
    """Return whether the provider refuses the account (key, quota) and not this batch alone."""
    return isinstance(error, Refused) or (isinstance(error, Rejected) and error.status is None)
