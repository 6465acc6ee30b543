"""Model calls for one turn or vote: attempts, repair, limits and budget, until there is a verdict or none.

The SDKs do not retry: this module does, so that every attempt is a row. Every answer is stored,
whether or not it can be parsed.
"""

import asyncio
import json
import logging
import math
import random
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, NoReturn

from corpus.evidence.measures import EvidenceTarget
from judges.costs.judge_records import CurrentPrices, read_prices
from judges.costs.prices import cost_bound, input_bound, output_bound
from judges.domain import refusals
from judges.domain.prompt_sizes import RepeatedCounts
from judges.domain.refusals import Failure, Meaning
from judges.domain.verdicts import NoVerdict
from judges.engine import leases
from judges.engine.answers import Decision, Retry, SentCall, dump_answer, one_line, unexpected_error
from judges.engine.budget import Budget, BudgetExhausted
from judges.engine.cache import Cache, make_cache_key
from judges.engine.leases import Claimed, RefusalStreak
from judges.engine.limits import (
    GIVE_UP_AFTER,
    SIT_OUT_S,
    Abandoned,
    AccountLimits,
    CircuitOpen,
    Denied,
    Permit,
    RateLimits,
)
from judges.engine.pending_answers import PendingAnswerLog, Segment
from judges.engine.plan import Plan
from judges.engine.rows import NO_ANSWER, AttemptRow, Row, stored_turn
from judges.engine.trials import Doubt
from judges.engine.writer import ResultWriter
from judges.errors import BadAnswer, Declined, NotSent, ProviderError, RateLimited, Refused, Rejected, Unreachable
from judges.prompts import answering, render
from judges.providers import open_provider
from judges.providers.replies import PASSING, REFUSALS
from judges.rates import Rate
from judges.records import Body, DebateAgent, Judge, ModelRequest, Prompt, Reply, Slot, Turn, slot_columns

ATTEMPTS = 4
LONGEST_WAIT_S = 30.0
LOOK_S = 0.5
PRICES_S = 1.0  # Age of the prices at which they are looked up again.
NEWEST_PRICE = "SELECT COALESCE(max(id), 0) FROM judges_pricerow"
PASSED_OVER = 5  # Refusals (429) of a question while its account answered others, after which it counts as an error.
# A refusal of the account is no outcome of the question, which is asked again.
NOBODYS = {"outcome": "error", "counts": False}
LIMITED = Retry()  # The account refused the call for now: no try of the question.

MOMENTARY = (408, 429, *PASSING)  # Statuses below 500 that may be gone a moment later.
PATIENCE = 60  # Times RETRY_SECONDS: how long the last questions of a campaign are tried.
OPEN_PAIRS = """
SELECT (SELECT count(*) FROM (
        SELECT FROM judges_work
        WHERE campaign_id = %(campaign)s AND state IN ('pending', 'running') LIMIT %(most)s) w),
    EXISTS (SELECT FROM judges_ledger
        WHERE campaign_id = %(campaign)s AND judge_id = %(judge)s AND outcome <> 'error' AND calls > 0)
"""

logger = logging.getLogger(__name__)


class Cancelled(Exception):
    """No more calls may be sent: the campaign is paused or cancelled, the worker shuts down, or the lease is lost."""


@dataclass(frozen=True, slots=True)
class JudgeQuestion:
    """A question: one slot of a pair, for one judge."""

    slot: Slot
    judge: Judge
    prompt: Prompt
    schema: dict[str, Any]
    key_sample: int = 0
    history: Mapping[DebateAgent, Turn] | None = None
    written: EvidenceTarget | None = None
    documents: tuple[str, ...] = ()
    # For a step of a conversation: its topic, what its answer is checked by, and what its prompt is rendered from.
    topic: str = ""
    expected: Mapping[str, Any] = field(default_factory=dict)
    material: Mapping[str, Any] = field(default_factory=dict)
    # Called with a good answer before the attempt is stored, for answers kept elsewhere (vectors of role embed).
    keep: Callable[[Turn], None] | None = None


@dataclass(slots=True)
class Tools:
    """Services that the calls of one worker process share."""

    writer: ResultWriter
    cache: Cache
    limits: RateLimits
    sending: asyncio.Semaphore
    holder: str
    retry_s: float
    begun: leases.SentLeases = field(init=False)
    counts: dict[int, RepeatedCounts] = field(default_factory=lambda: defaultdict(RepeatedCounts))  # By judge.
    # The newest row of the price table, and when it was looked up.
    newest_price: int = 0
    price_seen: float = -math.inf

    def __post_init__(self) -> None:
        self.begun = leases.SentLeases(self.writer.ask)


class Caller:
    """Sends the calls of one campaign in one process, until `stopped` returns True."""

    def __init__(
        self,
        tools: Tools,
        plan: Plan,
        budget: Budget,
        should_stop: Callable[[], bool],
        refused: Callable[[str], None],
        *,
        puts_back: bool = True,
    ) -> None:
        self.tools, self.plan, self.budget, self.stopped = tools, plan, budget, should_stop
        # Called as soon as an account refuses every call, and again once it is known why; `stopped` is True from then.
        self.refused = refused
        # In a worker, pairs are put back while an account is in trouble. Otherwise
        # (judges.workers.inline_runner) the call fails, after some minutes of an open circuit.
        self.puts_back = puts_back
        self.trials = tools.limits.trials
        self.accounts = {judge.id: judge.account for judge in plan.judges}
        self.current = CurrentPrices(plan.prices, plan.tables)
        self.priced_at = plan.priced_at
        self.pricing = asyncio.Lock()

    async def ask(self, claimed: Claimed, question: JudgeQuestion) -> Turn | NoVerdict:
        """Return the turn or vote, or NoVerdict. Raises Cancelled, BudgetExhausted.

        1. Return the stored answer of a slot that was answered under an earlier lease.
        2. End a question without a verdict if it has failed for long, and the account's circuit is still open.
        3. Try it up to ATTEMPTS times, with a wait after each try that brought no answer. While the circuit is open,
           one try more decides about a question that failed before.
        4. Let the pair wait if the tries failed while the account was in trouble: they tell nothing about the question.
        """
        slot = question.slot
        if slot in claimed.ended:
            return claimed.ended[slot]
        result: Decision = NoVerdict("error")
        since = math.inf  # When the question first failed.
        was_tried = claimed.attempt_base and self.puts_back
        account = self.tools.limits.account(question.judge.account)
        window = [claimed.window] if claimed.window else []
        name = "/".join(map(str, (claimed.pair, *slot, *window)))
        failing = await self.trials.find_failing(self.plan.campaign, name) if was_tried else None
        if failing:
            since, claimed.last_error = failing
            if account.opened and await self._is_isolated(question, since, answers_others=False):
                claimed.ended[slot] = NoVerdict("error")
                return claimed.ended[slot]
        was_well, answers_others = True, False
        while next_try := self.next_try(claimed, question):
            number, prompt = next_try
            answers_others = self.trials.answers.get(question.judge.account, 0.0) > since
            try:
                result = await self._attempt(claimed, question, number, prompt)
            except (Cancelled, BudgetExhausted):
                await self._store_refusals(claimed, slot)
                if since < math.inf:
                    await self.trials.note_failing(self.plan.campaign, name, since, claimed.last_error)
                raise
            if result is LIMITED:
                continue
            claimed.tries[slot] = number
            if isinstance(result, Turn | NoVerdict):
                break
            # Tries are counted from the last retry-failed, which raises `attempt_base` past the earlier numbers.
            tries = number - claimed.attempt_base
            if result.problem:
                claimed.problems[slot] = result.problem
            since = min(since, time.time())
            was_well = was_well and account.is_isolated_failure(tries)
            if failing and account.opened and await self._is_isolated(question, since, answers_others):
                break
            if not result.problem and tries < ATTEMPTS:
                # Full jitter below a doubling bound, in addition to the wait that the provider asked for.
                jitter = random.uniform(0, min(LONGEST_WAIT_S, self.tools.retry_s * 2**tries))
                until = time.monotonic() + result.wait + jitter
                # Short sleeps, since a pause or a shutdown must not wait for minutes.
                while (seconds := until - time.monotonic()) > 0:
                    await asyncio.sleep(min(seconds, LOOK_S))
                    self._check(claimed)
        if isinstance(result, Retry) and not (was_well or await self._is_isolated(question, since, answers_others)):
            await self.trials.note_failing(self.plan.campaign, name, since, claimed.last_error)
            self._wait_with(claimed)
        final = result if isinstance(result, Turn | NoVerdict) else NoVerdict("error")
        claimed.ended[slot] = final
        return final

    async def _is_isolated(self, question: JudgeQuestion, since: float, answers_others: bool) -> bool:
        """Return whether a question that has failed `since`, with its last try, fails by itself.

        A call that found no connection shows nothing, so then only the long wait of an outage ends it.
        """
        is_connected = self.tools.limits.account(question.judge.account).is_connected
        values = {"campaign": self.plan.campaign, "judge": question.judge.id, "most": refusals.PAIRS_LEFT + 1}
        pairs, answers = await self.tools.writer.ask(
            lambda connection: connection.execute(OPEN_PAIRS, values).fetchone() or (0, False)
        )
        return refusals.is_isolated(
            time.time() - since,
            PATIENCE * self.tools.retry_s,
            pairs if is_connected else refusals.PAIRS_LEFT + 1,
            answers=answers,
            answers_others=answers_others and is_connected,
        )

    def next_try(self, claimed: Claimed, question: JudgeQuestion) -> tuple[int, Prompt] | None:
        """Return number and prompt of a slot's next try; None if its tries are used up."""
        slot = question.slot
        number = claimed.tries.get(slot, claimed.attempt_base) + 1
        if number > claimed.attempt_base + ATTEMPTS:
            return None
        prompt = answering.fit_prompt(question.prompt, question.judge, question.schema)
        # A repair adds what was wrong to the original prompt, so that the model sees its whole task.
        if slot in claimed.problems:
            prompt = render.repair_prompt(prompt, claimed.problems[slot])
        return number, prompt

    def _wait_with(self, claimed: Claimed) -> None:
        """Put the pair back to pending, where that is possible. Raises Cancelled then."""
        if self.puts_back:
            claimed.lease.waits = True
            raise Cancelled

    def _refuse(self, claimed: Claimed, reason: str) -> NoReturn:
        """Report that an account refuses every call, and why: the pair waits. Raises Cancelled."""
        self.refused(one_line(reason))
        claimed.lease.waits = True
        raise Cancelled

    async def _attempt(self, claimed: Claimed, question: JudgeQuestion, number: int, prompt: Prompt) -> Decision:
        """Make one try of a question. Raises Cancelled, BudgetExhausted.

        1. Reserve the call's money, or take the answer of an equal call from the cache.
        2. Wait until no trial holds the call back, and for a permit of the account.
        3. Send it; start over if a trial has begun in the meantime.
        """
        sent = await self.prepare(claimed, question, number, prompt)
        if isinstance(sent, Turn):
            return sent
        account = self.tools.limits.account(question.judge.account)
        tokens = input_bound(question.judge, prompt, question.schema) + output_bound(question.judge)
        doubt = self._doubt(question)
        decision: Decision | None = None
        while decision is None:
            try:
                while self._is_held(claimed, question):
                    await self._look_again(claimed, question.judge)
                self.trials.begin(doubt)
                try:
                    patience = 0 if self.puts_back else GIVE_UP_AFTER
                    limit = question.judge.timeout_s
                    permit = await account.acquire(tokens, lambda: self._is_over(claimed), patience, limit)
                except BaseException:
                    self.trials.end(doubt)
                    raise
            # No call was sent, so the money that `prepare` reserved is returned.
            except (CircuitOpen, Abandoned, Cancelled) as error:
                if sent.row["calls"]:
                    self.budget.give_back(sent.row["usd"])
                if isinstance(error, Abandoned | Cancelled):
                    raise Cancelled from error
                if isinstance(error, Denied):
                    self._refuse(claimed, describe_refusal(question.judge, str(error)))
                self._wait_with(claimed)
                await self._store_refusals(claimed, question.slot)
                claimed.last_error = one_line(f"{question.judge.name}: {error}")
                return NoVerdict("error")
            decision = await self._send(claimed, question, sent, prompt, permit)
        return decision

    async def prepare(self, claimed: Claimed, question: JudgeQuestion, number: int, prompt: Prompt) -> Turn | SentCall:
        """Return the turn of an equal earlier call, stored as this one's, or the call with its money reserved.

        Raises Cancelled, BudgetExhausted.
        """
        self._check(claimed)
        key = make_cache_key(question.judge, prompt, question.key_sample, self.plan.collection)
        row = NO_ANSWER | {
            "id": await self.tools.writer.next_id(),
            "work": claimed.work,
            "fence": claimed.fence,
            "campaign": self.plan.campaign,
            "pair": claimed.pair,
            "query": claimed.query or None,
            "topic": question.topic,
            "window": claimed.window,
            "documents": len(question.documents),
            "judge": question.judge.id,
            "prompt": self.plan.prompt_ids[prompt.name, prompt.sha256],
            **slot_columns(question.slot),
            "number": number,
            "key": key,
            "started": datetime.now(UTC).isoformat(),
            "holder": self.tools.holder,
        }
        # Offline judges also read the collection's documents, and cost nothing: they are always
        # called. A vote of several generations copies an answer that this campaign has just received.
        is_copy = question.slot[0] == "vote" and question.judge.generations > 1
        bypasses_cache = question.judge.provider == "offline" or (self.plan.row.fresh and not is_copy)
        earlier_attempt = None if bypasses_cache else await self.tools.cache.find(key)
        if earlier_attempt is not None:
            await self.tools.writer.write(
                AttemptRow(row | earlier_attempt.row, earlier_attempt.messages, earlier_attempt.raw)
            )
            log_call(row | earlier_attempt.row, question.judge)
            return stored_turn(earlier_attempt.row)
        # The most that the call can cost is reserved; the difference is returned when its real cost is stored.
        price = self.current.prices[question.judge.id]
        usd = cost_bound(question.judge, prompt, question.schema, price)
        row["bound"] = usd
        if self.budget.bounded or question.judge.provider != "offline":
            row |= {"usd": await self.budget.reserve(usd), "calls": 1, "holder": self.budget.holder}
        # A repair is asked for once. Calls that rank or embed documents have no prompt that could name
        # the problem, and after the last attempt none is left that could send the repair.
        is_last = number == claimed.attempt_base + ATTEMPTS
        return SentCall(
            row=row,
            judge=question.judge,
            document=claimed.inputs.document,
            price=price,
            strict=self.plan.row.policy == "single",
            may_repair=not (is_last or question.slot in claimed.problems or question.documents),
            messages=json.dumps(prompt.messages, ensure_ascii=False),
            expected=dict(question.expected),
            table=self.current.tables.get((question.judge.provider, question.judge.base_url), {}),
            batch=self.plan.protocol.batch,
            offset=claimed.inputs.window.start if claimed.inputs.window is not None else 0,
        )

    async def _at_current_price(self, question: JudgeQuestion, sent: SentCall, prompt: Prompt) -> SentCall:
        """Return the call at the current price: while it waited, its price may have changed.

        Raises BudgetExhausted if the money for a higher price is missing.
        """
        if question.judge.provider == "offline":
            return sent
        tools = self.tools
        if time.monotonic() - tools.price_seen > PRICES_S:
            tools.price_seen = time.monotonic()
            (tools.newest_price,) = (await tools.writer.ask(lambda raw: raw.execute(NEWEST_PRICE).fetchone())) or (0,)
        newest = tools.newest_price
        async with self.pricing:
            if newest > self.priced_at:
                self.current = await asyncio.to_thread(read_prices, self.plan.prices, batch=self.plan.protocol.batch)
                self.priced_at = newest
        price, row = self.current.prices[question.judge.id], sent.row
        if price == sent.price:
            return sent
        row["bound"] = cost_bound(question.judge, prompt, question.schema, price)
        if row["calls"]:
            self.budget.give_back(row["usd"])
            row |= {"usd": await self.budget.reserve(row["bound"]), "holder": self.budget.holder}
        table = self.current.tables.get((question.judge.provider, question.judge.base_url), {})
        return replace(sent, price=price, table=table)

    async def _send(
        self, claimed: Claimed, question: JudgeQuestion, sent: SentCall, prompt: Prompt, permit: Permit
    ) -> Decision | None:
        """Send the call and return the decision that its answer means; None if a trial held it back.

        1. Send it, at the current price, unless the campaign was halted meanwhile; then return its money.
        2. Release the permit in any case, and update the account's limits and circuit.
        3. A 429 is no try: return LIMITED, or the error that many of them become.
        4. Weigh a failure: a refusal waits until it is known whether it concerns the question or the account.
        5. Store the attempt, whatever was decided. An account's refusal pauses the campaign.

        Raises Cancelled, BudgetExhausted.
        """
        account, row = self.tools.limits.account(question.judge.account), sent.row
        used: int | None = None
        call = Call(self.tools.writer.spool, sent, self.refused, self._suspect)

        def is_over() -> bool:
            # A call that tries an open circuit is sent although the rest of its pair waits.
            return self.stopped() or claimed.lease.lost or (claimed.lease.waits and not permit.tries)

        sent_at = 0.0

        def is_halted() -> bool:
            # The provider asks last as it sends the call, so the last time noted is that of sending.
            nonlocal sent_at
            sent_at = time.time()
            return is_over() or self._is_held(claimed, question, mine=1)

        request = ModelRequest(
            question.judge,
            prompt,
            question.schema,
            claimed.inputs,
            *question.slot,
            history=question.history,
            written=question.written,
            documents=question.documents,
            material=question.material,
            arrived=call.arrived,
            began=call.began,
            halted=is_halted,
        )
        try:
            async with self.tools.sending:
                result: Reply | ProviderError = NotSent("the campaign was halted")
                if not is_halted():
                    sent = call.sent = await self._at_current_price(question, sent, prompt)
                # Checked again: the campaign may have been halted while this call waited for its price.
                if not is_halted():
                    self.tools.begun.note(claimed)
                    result = await call.complete(request)
            if isinstance(result, NotSent) and not permit.tries and not is_over():
                return None
            if isinstance(result, NotSent):
                if permit.tries:
                    account.failed(account.last_error)  # another call tries the circuit, after the usual wait
                if row["calls"]:
                    self.budget.give_back(row["usd"])
                raise Cancelled
            used = 0
            if isinstance(result, Reply):
                # The provider's count, if it sends one, replaces the estimate.
                used = result.usage.input + result.usage.output or permit.tokens
        finally:
            # Also when the task is cancelled: a permit that is not released blocks the account until
            # its lease ends.
            account.release(permit, used)
            self.trials.begun[self.plan.start] -= int(call.suspected)
            self.trials.end(self._doubt(question))
        seconds, rate = time.monotonic() - call.begun, call.body.rate if call.body else None
        update_limits(account, result, call.begun, permit, seconds, rate)
        if isinstance(result, Reply):
            answers = self.trials.answers
            answers[question.judge.account] = max(sent_at, answers.get(question.judge.account, 0.0))
            counts = self.tools.counts[question.judge.id]
            if counts.is_cut(f"{prompt.system}\n{prompt.user}", result.usage.input):
                result = replace(result, prompt_cut=True)
        if isinstance(result, ProviderError) and result.late:
            result.args = (f"{result}; {account.timed_out(permit, question.judge.timeout_s)}",)
        decision, attempt = sent.ended(result)
        if isinstance(result, RateLimited):
            call.stored()
            return await self._refused_for_now(claimed, question, attempt)
        await self._store_refusals(claimed, question.slot)
        log_call(row, question.judge)
        if question.keep is not None and isinstance(decision, Turn):
            question.keep(decision)
        if isinstance(decision, NoVerdict) or (isinstance(decision, Retry) and not decision.problem):
            claimed.last_error = f"{question.judge.name}: {row['error']}"
        try:
            await self._weigh_failure(claimed, question, result, decision, row, sent_at)
        except Cancelled:
            # The refusal is the account's, or it is not known whose: it is no outcome of the question.
            claimed.tries[question.slot] = row["number"]
            if not isinstance(result, Reply):
                row.update(NOBODYS)
            raise
        finally:
            try:
                await self.tools.writer.write(attempt)
            finally:  # an attempt that cannot be stored now could not be recovered either
                call.stored()
        if isinstance(result, Refused):
            # `_refuse` raises before `ask` can note the number of the try.
            claimed.tries[question.slot] = row["number"]
            self._refuse(claimed, describe_refusal(question.judge, str(result)))
        return decision

    async def _refused_for_now(self, claimed: Claimed, question: JudgeQuestion, attempt: AttemptRow) -> Decision:
        """Add a refusal (429) to the question's streak; return LIMITED, or an error if the account only refuses it."""
        row, slot = attempt.row, question.slot
        if row["calls"]:
            self.budget.give_back(row["usd"])
            row |= {"usd": 0.0, "calls": 0}
        account = self.tools.limits.account(question.judge.account)
        previous = claimed.refused.get(slot)
        streak = claimed.refused[slot] = RefusalStreak(attempt, 1, account.answers)
        if previous is not None:
            streak.count = previous.count + 1
            streak.passed_over = previous.passed_over + (account.answers > previous.answers)
        claimed.last_error = f"{question.judge.name}: {row['error']}"
        if streak.passed_over < PASSED_OVER:
            return LIMITED
        # The account accepts other calls and never this one, which needs more tokens than a minute allows.
        await self._store_refusals(claimed, slot)
        return NoVerdict("error")

    async def _store_refusals(self, claimed: Claimed, slot: Slot) -> None:
        """Store the refusals (429) of a question as one row, with their number."""
        streak = claimed.refused.pop(slot, None)
        if streak is None:
            return
        if streak.count > 1:
            streak.last.row["error"] = one_line(f"{streak.count} times: {streak.last.row['error']}")
        await self.tools.writer.write(streak.last)

    async def _look_again(self, claimed: Claimed, judge: Judge) -> None:
        """Wait for the next exchange with Redis, which brings the failures of other workers. Raises Cancelled."""
        self.tools.limits.account(judge.account).look()
        await self.trials.wait(LOOK_S / 2)
        self._check(claimed)

    def _is_held(self, claimed: Claimed, question: JudgeQuestion, mine: int = 0) -> bool:
        return self.trials.holds(self._doubt(question), _document_of(claimed), self.accounts, mine=mine)

    def _suspect(self) -> None:
        """Hold other calls back while a refusal arrives, until it has been read."""
        self.trials.begun[self.plan.start] += 1

    def _doubt(self, question: JudgeQuestion) -> Doubt:
        return self.plan.start, question.judge.id

    async def _weigh_failure(
        self,
        claimed: Claimed,
        question: JudgeQuestion,
        result: Reply | ProviderError,
        decision: Decision,
        row: Row,
        sent_at: float,
    ) -> None:
        """Note a usable answer or a failure of the judge.

        A refusal waits until it is known whether it concerns the question or the account. Raises Cancelled.
        """
        judge, doubt = question.judge, self._doubt(question)
        if isinstance(decision, Turn):
            self.trials.answered(doubt, sent_at)
            return
        failure = read_failure(_document_of(claimed), result, row, sent_at)
        if failure is None:
            return
        await self.trials.failed(doubt, failure)
        while True:
            meaning = self.trials.meaning(doubt, self.accounts)
            if meaning in (Meaning.ACCOUNT, Meaning.UNUSABLE):
                failures = self.trials.failures[doubt]
                self._refuse(claimed, refusals.describe(meaning, judge.name, judge.account_name, failures))
            if not failure.words or not self.trials.is_held_back(doubt, self.accounts):
                return
            await self._look_again(claimed, judge)

    def _is_over(self, claimed: Claimed) -> bool:
        return self.stopped() or claimed.lease.lost or claimed.lease.waits

    def _check(self, claimed: Claimed) -> None:
        if self._is_over(claimed):
            raise Cancelled


class Call:
    """One call of a model, whose answer is written to the pending-answer log before it is parsed."""

    def __init__(
        self,
        log: PendingAnswerLog,
        sent: SentCall,
        refused: Callable[[str], None],
        suspect: Callable[[], None],
    ) -> None:
        self.spool, self.sent, self.refused, self.suspect = log, sent, refused, suspect
        self.suspected = False
        self.segment: Segment | None = None
        self.body: Body | None = None
        self.begun = 0.0

    async def complete(self, request: ModelRequest) -> Reply | ProviderError:
        """Send the request, and return its reply or, for any failure, a ProviderError."""
        row = self.sent.row
        row["started"] = datetime.now(UTC).isoformat()
        self.begun = time.monotonic()
        try:
            return await open_provider(request.judge).complete(request)
        except ProviderError as error:
            return error
        except Exception as error:
            logger.exception("%s: the call broke", request.judge.name)
            return unexpected_error(error, self.body)
        finally:
            row["ms"] = row["ms"] or self._milliseconds()

    def began(self, status: int) -> None:
        """Note the status of an answer that begins to arrive. A refusal counts before it is read."""
        if status in REFUSALS:
            self.refused("")
        elif 300 <= status < 500 and status not in MOMENTARY and not self.suspected:
            self.suspected = True
            self.suspect()

    def arrived(self, body: Body) -> None:
        """Log the complete answer: from here on it survives this process."""
        self.sent.row["ms"] = self._milliseconds()
        self.body = body
        self.segment = self.spool.keep(dump_answer(self.sent, body))

    def stored(self) -> None:
        if self.segment is not None:
            self.spool.done(self.segment)

    def _milliseconds(self) -> int:
        return int((time.monotonic() - self.begun) * 1000)


def log_call(row: Row, judge: Judge) -> None:
    """Log an ended call at debug level; its row has the same figures, and the texts."""
    if logger.isEnabledFor(logging.DEBUG):
        log_fields = {name: row[name] for name in ("role", "round", "number", "outcome", "status")}
        logger.debug(
            "call ended", extra={**log_fields, "judge": judge.name, "attempt": row["id"], "milliseconds": row["ms"]}
        )


def update_limits(
    account: AccountLimits,
    result: Reply | ProviderError,
    sent: float = math.inf,
    permit: Permit | None = None,
    seconds: float = 0.0,
    rate: Rate | None = None,
) -> None:
    """Update an account's limits and circuit by a result; `sent`: monotonic time at which the call was sent."""
    if isinstance(result, RateLimited):
        wait = result.retry_after
        if wait is None and rate is not None and rate.reset:
            wait = rate.reset
        account.limited(str(result), wait, permit, rate.per_minute if rate is not None else 0)
        return
    # Only an error that another try may avoid tells something about the account; a rejection concerns the request.
    if isinstance(result, ProviderError) and result.retry:
        is_unsent = isinstance(result, Unreachable) and result.status is None and not result.billed
        account.failed(str(result), unsent=is_unsent)
        if (result.retry_after or 0.0) > SIT_OUT_S:
            account.pause(result.retry_after or 0.0)  # a shorter wait is left to the call itself
        return
    # A refusal is a response too: the account is reachable, so its circuit closes, and its key is denied below.
    account.responded(permit, seconds, rate)
    account.accepted = account.accepted or isinstance(result, Reply)
    if isinstance(result, Refused):
        account.deny(str(result), sent)


def read_failure(document: int, result: Reply | ProviderError, row: Mapping[str, Any], sent: float) -> Failure | None:
    """Return the failure of a judge that an unusable answer shows.

    None for errors that pass, and for refusals of the account, which pause the campaign by themselves.
    """
    is_rejection = isinstance(result, Rejected) and not isinstance(result, Refused)
    if isinstance(result, ProviderError) and not is_rejection and not isinstance(result, BadAnswer):
        return None
    words = refusals.refusal_text(str(result)) if is_rejection else ""
    is_about_content = isinstance(result, Declined)
    after = sent + refusals.AFTER_S if is_about_content else time.time()
    return Failure(document, after, row["error"], row["outcome"], words, is_about_content)


def describe_refusal(judge: Judge, error: str) -> str:
    return f"{judge.name}, account {judge.account_name}: {error}{refusals.advise(error)}"


def _document_of(claimed: Claimed) -> int:
    # Calls of runs and conversations are about no pair: their subjects are distinguished by `work`.
    return claimed.inputs.document_id or claimed.pair or -1 - claimed.work
