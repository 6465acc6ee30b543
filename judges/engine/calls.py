"""Calls for one turn or vote: attempts, repair, limits and budget, until there is a verdict or none.

The SDKs do not retry: this loop does, so that every attempt is a row. What came back is handed to
the writer whatever the parser makes of it.
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
from judges.costs.budget import Budget, BudgetExhausted
from judges.costs.prices import cost_bound, input_bound, output_bound
from judges.domain import refusals
from judges.domain.prompt_sizes import RepeatedCounts
from judges.domain.refusals import Failure, Meaning
from judges.domain.verdicts import NoVerdict
from judges.engine import leases
from judges.engine.answers import Decision, Retry, Sent, dump_answer, one_line, unexpected_error
from judges.engine.cache import Cache, make_cache_key
from judges.engine.leases import Claimed, Refusals
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
from judges.engine.plan import CurrentPrices, Plan, read_prices
from judges.engine.rows import NO_ANSWER, Attempted, Row, stored_turn
from judges.engine.trials import Doubt
from judges.engine.writer import ResultWriter
from judges.errors import BadAnswer, Declined, NotSent, ProviderError, RateLimited, Refused, Rejected
from judges.prompts import answering, render
from judges.providers import open_provider
from judges.providers.replies import PASSING, REFUSALS
from judges.rates import Rate
from judges.records import Body, DebateAgent, Judge, ModelRequest, Prompt, Reply, Slot, Turn, slot_columns

ATTEMPTS = 4
LONGEST_WAIT_S = 30.0
LOOK_S = 0.5
PRICES_S = 1.0  # How old the prices are that a call is sent at.
NEWEST_PRICE = "SELECT COALESCE(max(id), 0) FROM judges_pricerow"
PASSED_OVER = 5  # Refusals (429) of a question while its account answered others: then it never takes this one.
# A refusal that is the account's is no outcome of its question, which is asked again.
NOBODYS = {"outcome": "error", "counts": False}
LIMITED = Retry()  # The account refused the call for now: no try of the question.

MOMENTARY = (408, 429, *PASSING)  # Statuses below 500 that speak of the moment.
PATIENCE = 60  # Times RETRY_SECONDS: how long the last questions of a campaign are tried.
LEFT = """
SELECT (SELECT count(*) FROM (
        SELECT FROM judges_work
        WHERE campaign_id = %(campaign)s AND state IN ('pending', 'running') LIMIT %(most)s) w),
    EXISTS (SELECT FROM judges_ledger
        WHERE campaign_id = %(campaign)s AND judge_id = %(judge)s AND outcome <> 'error' AND calls > 0)
"""

logger = logging.getLogger(__name__)


class Cancelled(Exception):
    """Send nothing more: paused, cancelled, shut down, or without the lease."""


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
    # Of a conversation's step: what else it is about, what its answer is checked by, and what its prompt is made of.
    topic: str = ""
    expected: Mapping[str, Any] = field(default_factory=dict)
    material: Mapping[str, Any] = field(default_factory=dict)
    # Takes a good answer before the attempt is stored: for what is kept elsewhere (vectors of role embed).
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
    # The newest row of the price table, and when it was looked for.
    newest_price: int = 0
    price_seen: float = -math.inf

    def __post_init__(self) -> None:
        self.begun = leases.SentLeases(self.writer.ask)


class Caller:
    """Asks for one campaign in one process. `stopped` says whether nothing more may be sent."""

    def __init__(
        self,
        tools: Tools,
        plan: Plan,
        budget: Budget,
        stopped: Callable[[], bool],
        refused: Callable[[str], None],
        *,
        puts_back: bool = True,
    ) -> None:
        self.tools, self.plan, self.budget, self.stopped = tools, plan, budget, stopped
        # Told as soon as an account refuses us, and again once it is known why: from then on `stopped` says so.
        self.refused = refused
        # Pairs can be put back: they wait while an account is in trouble. Else
        # (judges.inline.runner) the call fails, an open circuit after some minutes.
        self.puts_back = puts_back
        self.trials = tools.limits.trials
        self.accounts = {judge.id: judge.account for judge in plan.judges}
        self.current = CurrentPrices(plan.prices, plan.tables)
        self.priced_at = plan.priced_at
        self.pricing = asyncio.Lock()

    async def ask(self, claimed: Claimed, question: JudgeQuestion) -> Turn | NoVerdict:
        """Return the turn or vote, or that there is none. Cancelled, BudgetExhausted."""
        slot = question.slot
        # The slot was answered before the lease was lost or the worker restarted: it is not bought again.
        if slot in claimed.ended:
            return claimed.ended[slot]
        result: Decision = NoVerdict("error")
        since = math.inf  # When the question first failed.
        # Its tries were used up before, in whatever process.
        tried = claimed.attempt_base and self.puts_back
        name = _name_of(claimed, question)
        if tried and (known := await self.trials.find_failing(self.plan.campaign, name)):
            since, claimed.last_error = known
            if await self._is_isolated(question, since):
                claimed.ended[slot] = NoVerdict("error")
                return claimed.ended[slot]
        while following := self.next_try(claimed, question):
            number, prompt = following
            try:
                result = await self._attempt(claimed, question, number, prompt)
            except (Cancelled, BudgetExhausted):
                await self._store_refusals(claimed, slot)
                raise
            if result is LIMITED:
                continue
            claimed.tries[slot] = number
            if isinstance(result, Turn | NoVerdict):
                break
            tries = number - claimed.attempt_base
            # Tries are counted from the last retry-failed on, which raises `attempt_base` past the earlier numbers.
            if result.problem:
                claimed.problems[slot] = result.problem
            since = min(since, time.time())
            if not result.problem and tries < ATTEMPTS:
                # Full jitter over a doubling bound, and never less than the provider asked for.
                jitter = random.uniform(0, min(LONGEST_WAIT_S, self.tools.retry_s * 2**tries))
                until = time.monotonic() + result.wait + jitter
                # Short naps, since a pause or a shutdown must not wait for a provider's minutes.
                while (left := until - time.monotonic()) > 0:
                    await asyncio.sleep(min(left, LOOK_S))
                    self._check(claimed)
        well = self.tools.limits.account(question.judge.account).is_well
        if isinstance(result, Retry) and not (well or await self._is_isolated(question, since)):
            # Tries that failed while the account was in trouble prove nothing about the question: the pair waits.
            await self.trials.note_failing(self.plan.campaign, name, since, claimed.last_error)
            self._wait_with(claimed)
        final = result if isinstance(result, Turn | NoVerdict) else NoVerdict("error")
        claimed.ended[slot] = final
        return final

    async def _is_isolated(self, question: JudgeQuestion, since: float) -> bool:
        """Return whether a question that has failed `since` fails by itself, and not for its account's trouble."""
        others = self.trials.answers.get(question.judge.account, 0.0) > since
        values = {"campaign": self.plan.campaign, "judge": question.judge.id, "most": refusals.PAIRS_LEFT + 1}
        left, answers = await self.tools.writer.ask(lambda found: found.execute(LEFT, values).fetchone() or (0, False))
        patience = PATIENCE * self.tools.retry_s
        failing = time.time() - since
        return refusals.is_isolated(failing, patience, left, answers=answers, answers_others=others)

    def next_try(self, claimed: Claimed, question: JudgeQuestion) -> tuple[int, Prompt] | None:
        """Return number and prompt of a slot's next try; None when tried enough."""
        slot = question.slot
        number = claimed.tries.get(slot, claimed.attempt_base) + 1
        if number > claimed.attempt_base + ATTEMPTS:
            return None
        prompt = answering.fit_prompt(question.prompt, question.judge, question.schema)
        # A repair keeps the original prompt and adds what was wrong, so that the model sees its task whole.
        if slot in claimed.problems:
            prompt = render.repair_prompt(prompt, claimed.problems[slot])
        return number, prompt

    def _wait_with(self, claimed: Claimed) -> None:
        """Let the pair go back to pending, if somebody puts it there. Cancelled."""
        if self.puts_back:
            claimed.lease.waits = True
            raise Cancelled

    def _refuse(self, claimed: Claimed, why: str) -> NoReturn:
        """Say that an account refuses us, and why: the pair waits. Raises Cancelled."""
        self.refused(one_line(why))
        claimed.lease.waits = True
        raise Cancelled

    async def _attempt(self, claimed: Claimed, question: JudgeQuestion, number: int, prompt: Prompt) -> Decision:
        sent = await self.prepare(claimed, question, number, prompt)
        if isinstance(sent, Turn):
            return sent
        account = self.tools.limits.account(question.judge.account)
        tokens = input_bound(question.judge, prompt, question.schema) + output_bound(question.judge)
        doubt = self._doubt(question)
        decision: Decision | None = None
        while decision is None:
            try:
                while self._is_held(claimed, question):  # until it is known whose a refusal is
                    await self._look_again(claimed, question.judge)
                self.trials.begin(doubt)
                try:
                    patience = 0 if self.puts_back else GIVE_UP_AFTER
                    limit = question.judge.timeout_s
                    permit = await account.acquire(tokens, lambda: self._is_over(claimed), patience, limit)
                except BaseException:
                    self.trials.end(doubt)
                    raise
            # No call was sent, so the money that `prepare` reserved goes back.
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

    async def prepare(self, claimed: Claimed, question: JudgeQuestion, number: int, prompt: Prompt) -> Turn | Sent:
        """Store an equal call's answer as its own; else reserve the call's money. Raises Cancelled, BudgetExhausted."""
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
        # Offline judges read the collection's documents too, and cost nothing: they are always
        # asked. A vote of several answers is a copy of one that this campaign has just been given.
        is_copy = question.slot[0] == "vote" and question.judge.generations > 1
        asks = question.judge.provider == "offline" or (self.plan.row.fresh and not is_copy)
        known = None if asks else await self.tools.cache.find(key)
        if known is not None:
            await self.tools.writer.write(Attempted(row | known.row, known.messages, known.raw))
            log_call(row | known.row, question.judge)
            return stored_turn(known.row)
        # Reserved at the most that the call can cost; the difference comes back when its real cost is stored.
        price = self.current.prices[question.judge.id]
        usd = cost_bound(question.judge, prompt, question.schema, price)
        row["bound"] = usd
        if self.budget.bounded or question.judge.provider != "offline":
            row |= {"usd": await self.budget.reserve(usd), "calls": 1, "holder": self.budget.holder}
        # A repair is asked for once; what is ranked or turned into vectors has no prompt that could
        # say what was wrong. The last attempt is never repaired: no attempt would be left that
        # could send the repair.
        is_last = number == claimed.attempt_base + ATTEMPTS
        return Sent(
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

    async def _at_current_price(self, question: JudgeQuestion, sent: Sent, prompt: Prompt) -> Sent:
        """Return the call at the price that holds as it leaves: one that waited may have been priced long before.

        Raises BudgetExhausted where the money for a higher price is not there.
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
                self.current = await asyncio.to_thread(read_prices, self.plan, batch=self.plan.protocol.batch)
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
        self, claimed: Claimed, question: JudgeQuestion, sent: Sent, prompt: Prompt, permit: Permit
    ) -> Decision | None:
        """Send the call and return what its answer means; None where it was held back for a trial and did not leave."""
        account, row = self.tools.limits.account(question.judge.account), sent.row
        used: int | None = None
        call = Call(self.tools.writer.spool, sent, self.refused, self._suspect)

        def is_over() -> bool:
            """A call that tries an open circuit leaves although the rest of its pair waits."""
            return self.stopped() or claimed.lease.lost or (claimed.lease.waits and not permit.tries)

        left = 0.0

        def is_halted() -> bool:
            """Asked last when the call leaves: that moment is noted."""
            nonlocal left
            left = time.time()
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
                # Looked at again: the campaign may have been halted while this call waited for its turn to send.
                if not is_halted():
                    self.tools.begun.note(claimed)
                    result = await call.complete(request)
            if isinstance(result, NotSent) and not permit.tries and not is_over():
                return None
            if isinstance(result, NotSent):
                if permit.tries:
                    account.failed(account.last_error)  # somebody else tries, after the usual wait
                if row["calls"]:
                    self.budget.give_back(row["usd"])
                raise Cancelled
            used = permit.tokens if isinstance(result, Reply) else 0
            # What the provider counted, where it says so; the estimate holds until then.
            if isinstance(result, Reply) and result.usage.input + result.usage.output:
                used = result.usage.input + result.usage.output
        finally:
            # In any case, also when the task is cancelled: a permit that is not released blocks the
            # account until its lease ends.
            account.release(permit, used)
            self.trials.begun[self.plan.start] -= int(call.suspected)
            self.trials.end(self._doubt(question))
        seconds, rate = time.monotonic() - call.begun, call.body.rate if call.body else None
        update_limits(account, result, call.begun, permit, seconds, rate)
        if isinstance(result, Reply):
            self.trials.answers[question.judge.account] = max(
                left, self.trials.answers.get(question.judge.account, 0.0)
            )
        if isinstance(result, Reply) and self.tools.counts[question.judge.id].is_cut(
            f"{prompt.system}\n{prompt.user}", result.usage.input
        ):
            result = replace(result, prompt_cut=True)
        if isinstance(result, ProviderError) and result.late:
            result.args = (f"{result}; {account.timed_out(permit, question.judge.timeout_s)}",)
        decision, attempted = sent.ended(result)
        if isinstance(result, RateLimited):
            call.stored()
            return await self._refused_for_now(claimed, question, attempted)
        await self._store_refusals(claimed, question.slot)
        log_call(row, question.judge)
        if question.keep is not None and isinstance(decision, Turn):
            question.keep(decision)
        if isinstance(decision, NoVerdict) or (isinstance(decision, Retry) and not decision.problem):
            claimed.last_error = f"{question.judge.name}: {row['error']}"
        try:
            await self._weigh_failure(claimed, question, result, decision, row, left)
        except Cancelled:
            # It is not known whose refusal this is, or it is the account's: nobody's vote is missing for it.
            claimed.tries[question.slot] = row["number"]
            if not isinstance(result, Reply):
                row.update(NOBODYS)
            raise
        finally:
            try:
                await self.tools.writer.write(attempted)
            finally:  # where it cannot be stored, not even alone, it would fail again
                call.stored()
        if isinstance(result, Refused):
            # `_refuse` raises past the place where `ask` notes the number; the row has it already.
            claimed.tries[question.slot] = row["number"]
            self._refuse(claimed, describe_refusal(question.judge, str(result)))
        return decision

    async def _refused_for_now(self, claimed: Claimed, question: JudgeQuestion, attempted: Attempted) -> Decision:
        """Keep a refusal (429) that is no try; LIMITED, unless it never ends."""
        row, slot = attempted.row, question.slot
        if row["calls"]:
            self.budget.give_back(row["usd"])
            row |= {"usd": 0.0, "calls": 0}
        account = self.tools.limits.account(question.judge.account)
        before = claimed.refused.get(slot)
        kept = claimed.refused[slot] = Refusals(attempted, 1, account.answers)
        if before is not None:
            kept.count = before.count + 1
            kept.passed_over = before.passed_over + (account.answers > before.answers)
        claimed.last_error = f"{question.judge.name}: {row['error']}"
        if kept.passed_over < PASSED_OVER:
            return LIMITED
        # The account has room for others and never for this one: it asks for more than a minute's worth of tokens.
        await self._store_refusals(claimed, slot)
        return NoVerdict("error")

    async def _store_refusals(self, claimed: Claimed, slot: Slot) -> None:
        """Store what the account refused of a question as one row that counts them."""
        kept = claimed.refused.pop(slot, None)
        if kept is None:
            return
        if kept.count > 1:
            kept.last.row["error"] = one_line(f"{kept.count} times: {kept.last.row['error']}")
        await self.tools.writer.write(kept.last)

    async def _look_again(self, claimed: Claimed, judge: Judge) -> None:
        """Wait for what other workers found out: it comes with the next exchange with Redis. Raises Cancelled."""
        self.tools.limits.account(judge.account).look()
        await self.trials.wait(LOOK_S / 2)
        self._check(claimed)

    def _is_held(self, claimed: Claimed, question: JudgeQuestion, mine: int = 0) -> bool:
        return self.trials.holds(self._doubt(question), _document_of(claimed), self.accounts, mine=mine)

    def _suspect(self) -> None:
        """Hold calls back while a refusal arrives, until it is known what it says."""
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
        sent: float,
    ) -> None:
        """Note what an answer says of its judge; a refusal waits until it is known whose it is. Raises Cancelled."""
        judge, doubt = question.judge, self._doubt(question)
        if isinstance(decision, Turn):
            self.trials.answered(doubt, sent)
            return
        failure = read_failure(_document_of(claimed), result, row, sent)
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
    """Call of a model, whose answer is in the pending-answer log before anything else reads it."""

    def __init__(
        self,
        spool: PendingAnswerLog,
        sent: Sent,
        refused: Callable[[str], None],
        suspect: Callable[[], None],
    ) -> None:
        self.spool, self.sent, self.refused, self.suspect = spool, sent, refused, suspect
        self.suspected = False
        self.segment: Segment | None = None
        self.body: Body | None = None
        self.begun = 0.0

    async def complete(self, request: ModelRequest) -> Reply | ProviderError:
        """Send the request; every failure is returned as a ProviderError."""
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
        """Note that an answer begins. A refusal counts before anybody has read it: others would be sent meanwhile."""
        if status in REFUSALS:
            self.refused("")
        elif 300 <= status < 500 and status not in MOMENTARY and not self.suspected:
            self.suspected = True
            self.suspect()

    def arrived(self, body: Body) -> None:
        """Keep the answer, whose last byte is here."""
        self.sent.row["ms"] = self._milliseconds()
        self.body = body
        # Written before anything parses it: from here on the answer survives this process.
        self.segment = self.spool.keep(dump_answer(self.sent, body))

    def stored(self) -> None:
        if self.segment is not None:
            self.spool.done(self.segment)

    def _milliseconds(self) -> int:
        return int((time.monotonic() - self.begun) * 1000)


def log_call(row: Row, judge: Judge) -> None:
    """Log a call that has ended, for who looks closely: the row says the same, with the texts."""
    if logger.isEnabledFor(logging.DEBUG):
        said = {name: row[name] for name in ("role", "round", "number", "outcome", "status")}
        logger.debug("call ended", extra={**said, "judge": judge.name, "attempt": row["id"], "milliseconds": row["ms"]})


def update_limits(
    account: AccountLimits,
    result: Reply | ProviderError,
    sent: float = math.inf,
    permit: Permit | None = None,
    seconds: float = 0.0,
    rate: Rate | None = None,
) -> None:
    """Tell an account's limits and circuit of a result; `sent`: monotonic."""
    if isinstance(result, RateLimited):
        wait = result.retry_after
        if wait is None and rate is not None and rate.reset:
            wait = rate.reset
        account.limited(str(result), wait, permit, rate.per_minute if rate is not None else 0)
        return
    # Only errors that another try may mend speak of the account; a rejected request speaks of itself.
    if isinstance(result, ProviderError) and result.retry:
        account.failed(str(result))
        if (result.retry_after or 0.0) > SIT_OUT_S:
            account.pause(result.retry_after or 0.0)  # else each of its calls waits for itself
        return
    account.responded(permit, seconds, rate)
    # A refusal is an answer too: the account is reachable, so its circuit closes, and its key is denied below.
    account.accepted = account.accepted or isinstance(result, Reply)
    if isinstance(result, Refused):
        account.deny(str(result), sent)


def read_failure(document: int, result: Reply | ProviderError, row: Mapping[str, Any], sent: float) -> Failure | None:
    """What an answer that was of no use says of its judge; None where it speaks of the moment.

    So does None of what refuses the account outright: that pauses by itself.
    """
    refused = isinstance(result, Rejected) and not isinstance(result, Refused)
    if isinstance(result, ProviderError) and not refused and not isinstance(result, BadAnswer):
        return None
    words = refusals.refusal_text(str(result)) if refused else ""
    content = isinstance(result, Declined)
    after = sent + refusals.AFTER_S if content else time.time()
    return Failure(document, after, row["error"], row["outcome"], words, content)


def describe_refusal(judge: Judge, error: str) -> str:
    return f"{judge.name}, account {judge.account_name}: {error}{refusals.advise(error)}"


def _name_of(claimed: Claimed, question: JudgeQuestion) -> str:
    return "/".join(map(str, (claimed.pair, *question.slot, *([claimed.window] if claimed.window else []))))


def _document_of(claimed: Claimed) -> int:
    # What runs and conversations ask is about no pair, and each subject of theirs is told apart by its place.
    return claimed.inputs.document_id or claimed.pair or -1 - claimed.work
