"""One turn or vote: attempts, repair, limits and budget, until there is a verdict or none (MECHANICS M3).

The SDKs do not retry: this loop does, so that every attempt is a row. What came back is handed to the writer whatever
the parser makes of it.
"""

import asyncio
import json
import logging
import random
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from judges import prompts, verdicts
from judges.engine import cache as caches
from judges.engine.budget import Budget
from judges.engine.cache import Answer, Cache
from judges.engine.claims import Claimed, Slot
from judges.engine.gate import Gate
from judges.engine.limits import CircuitOpen, Limits, Permit
from judges.engine.plan import Plan
from judges.engine.rows import Attempted
from judges.engine.writer import Writer
from judges.providers import open_provider
from judges.records import Judge, Prompt, ProviderError, RateLimited, Reply, Request, Turn, Usage
from judges.verdicts import Gone

ATTEMPTS = 4
OVERHEAD_TOKENS = 64
LONGEST_WAIT_S = 30.0

logger = logging.getLogger(__name__)


class Stopped(Exception):
    """The campaign was paused or cancelled, the worker shuts down, or the lease was lost: send nothing more."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: one slot of a pair, of one judge."""

    slot: Slot
    judge: Judge
    prompt: Prompt
    schema: dict[str, Any]
    key_sample: int = 0
    history: tuple[Turn, Turn] | None = None


@dataclass(frozen=True, slots=True)
class Retry:
    """No answer; worth another try after `wait` seconds."""

    wait: float


@dataclass(frozen=True, slots=True)
class Repair:
    """An answer that is no verdict; ask once more and say what was wrong."""

    problem: str


@dataclass(slots=True)
class Tools:
    """What the calls of one worker process share."""

    writer: Writer
    cache: Cache
    limits: Limits
    sending: Gate
    holder: str
    retry_s: float


class Caller:
    """Asks for one campaign in one process. `stopped` says whether nothing more may be sent."""

    def __init__(self, tools: Tools, plan: Plan, budget: Budget, stopped: Callable[[], bool]) -> None:
        self.tools = tools
        self.plan = plan
        self.budget = budget
        self.stopped = stopped

    async def ask(self, claimed: Claimed, question: Question) -> Turn | Gone:
        """The turn or vote, or the statement that there is none. Raises Stopped, Spent."""
        slot, base = question.slot, claimed.attempt_base
        if slot in claimed.ended:
            return claimed.ended[slot]
        number = claimed.tries.get(slot, base)
        prompt, repaired = question.prompt, False
        if slot in claimed.problems:
            prompt, repaired = prompts.repair_prompt(prompt, claimed.problems[slot]), True
        result: Turn | Gone | Retry | Repair = Gone("error")
        while number < base + ATTEMPTS:
            number += 1
            last = number == base + ATTEMPTS
            result = await self._attempt(claimed, question, prompt, number, may_repair=not repaired and not last)
            claimed.tries[slot] = number
            if isinstance(result, Turn | Gone):
                break
            if isinstance(result, Repair):
                claimed.problems[slot] = result.problem
                prompt, repaired = prompts.repair_prompt(prompt, result.problem), True
            elif not last:
                await asyncio.sleep(self._wait(number - base, result.wait))
        final = result if isinstance(result, Turn | Gone) else Gone("error")
        claimed.ended[slot] = final
        return final

    def _wait(self, tries: int, at_least: float) -> float:
        """Full jitter over a doubling bound, and never less than the provider asked for."""
        bound = min(LONGEST_WAIT_S, self.tools.retry_s * 2**tries)
        return at_least + random.uniform(0, bound)

    async def _attempt(
        self, claimed: Claimed, question: Question, prompt: Prompt, number: int, *, may_repair: bool
    ) -> Turn | Gone | Retry | Repair:
        self._check(claimed)
        key = caches.key(question.judge, prompt, question.key_sample, self.plan.collection)
        row = self._row(claimed, question, prompt, number, key)
        known = await self.tools.cache.find(key)
        if known is not None:
            await self.tools.writer.write(_cached(row, known))
            return known.turn
        usd = self._upper_bound(question, prompt)
        held = await self.budget.reserve(usd)
        account = self.tools.limits.account(question.judge.account)
        tokens = _tokens_bound(question, prompt)
        try:
            permit = await account.acquire(tokens)
        except CircuitOpen as error:
            if held is not None:
                self.budget.give_back(held)
            claimed.last_error = str(error)
            return Gone("error")
        if held is not None:
            row |= {"usd": held, "calls": 1}
        return await self._send(claimed, question, prompt, row, permit, may_repair)

    async def _send(
        self,
        claimed: Claimed,
        question: Question,
        prompt: Prompt,
        row: dict[str, Any],
        permit: Permit,
        may_repair: bool,
    ) -> Turn | Gone | Retry | Repair:
        account = self.tools.limits.account(question.judge.account)
        messages = _pack([("system", prompt.system), ("user", prompt.user)])
        used: int | None = None
        try:
            async with self.tools.sending:
                if self.stopped() or claimed.lost:
                    if row["calls"]:
                        self.budget.give_back(row["usd"])
                    raise Stopped
                row["started"] = datetime.now(UTC).isoformat()
                begun = time.perf_counter()
                result = await self._complete(question, prompt, claimed)
                came = time.perf_counter()
                row["ms"] = int((came - begun) * 1000)
            used = permit.tokens if isinstance(result, Reply) else 0
            if isinstance(result, Reply) and result.usage.input + result.usage.output:
                used = result.usage.input + result.usage.output
        finally:
            account.release(permit, used)
        decision: Turn | Gone | Retry | Repair
        if isinstance(result, ProviderError):
            decision, raw = self._judge_error(claimed, question, row, result), result.raw
            if isinstance(result, RateLimited):
                account.pause(result.retry_after or 0.0)
            else:
                account.failed(str(result))
        else:
            account.answered()
            decision, raw = self._judge_reply(claimed, question, row, result, may_repair), result.raw
        await self.tools.writer.write(Attempted(row, messages, zlib.compress(raw.encode(), 1)))
        self.tools.sending.stored_after(time.perf_counter() - came)
        return decision

    async def _complete(self, question: Question, prompt: Prompt, claimed: Claimed) -> Reply | ProviderError:
        role, round, sample = question.slot
        request = Request(
            judge=question.judge,
            prompt=prompt,
            schema=question.schema,
            inputs=claimed.inputs,
            role=role,
            round=round,
            sample=sample,
            history=question.history,
        )
        try:
            return await open_provider(question.judge).complete(request)
        except ProviderError as error:
            return error
        except Exception as error:  # an SDK's surprise costs this attempt, not the campaign
            logger.exception("%s: the call broke", question.judge.name)
            return ProviderError(f"{type(error).__name__}: {error}")

    def _judge_error(
        self, claimed: Claimed, question: Question, row: dict[str, Any], error: ProviderError
    ) -> Gone | Retry:
        message = f"{question.judge.name}: {_line(str(error))}"
        claimed.last_error = message
        row |= {"outcome": "error", "error": message, "status": error.status}
        row["cost"] = None if self.plan.prices[question.judge.id] is None else 0.0
        return Retry(error.retry_after or 0.0) if error.retry else Gone("error")

    def _judge_reply(
        self, claimed: Claimed, question: Question, row: dict[str, Any], reply: Reply, may_repair: bool
    ) -> Turn | Gone | Repair:
        """Fill the row from the answer; what it means for the turn."""
        usage: Usage = reply.usage
        price = self.plan.prices[question.judge.id]
        row |= {
            "status": reply.status,
            "finish": reply.finish_reason[:50],
            "tokens_in": usage.input,
            "tokens_cached": usage.cached,
            "tokens_out": usage.output,
            "tokens_reasoning": usage.reasoning,
            "cost": None if price is None else price.cost(usage),
        }
        if reply.refused or reply.truncated:
            outcome = "refused" if reply.refused else "truncated"
            return self._gone(claimed, question, row, outcome, outcome)
        try:
            if question.slot[0] == "vote":
                turn = verdicts.parse_vote(reply.text)
            else:
                turn = verdicts.parse_turn(reply.text, claimed.inputs.document)
        except verdicts.Unusable as error:
            if may_repair:
                row |= {"outcome": error.outcome, "error": _line(str(error))}
                return Repair(str(error))
            return self._gone(claimed, question, row, error.outcome, str(error))
        row |= {"outcome": "labelled", "counts": True, "verdict": turn.verdict, "reason": turn.reason}
        row["quotes"] = [{"text": quote.text, "start": quote.start, "end": quote.end} for quote in turn.quotes]
        return turn

    def _gone(self, claimed: Claimed, question: Question, row: dict[str, Any], outcome: str, problem: str) -> Gone:
        """An answer without a verdict is the turn or vote, except where it leaves the pair failed (`single`)."""
        claimed.last_error = f"{question.judge.name}: {_line(problem)}"
        counts = self.plan.policy != "single" or question.slot[0] != "vote"
        row |= {"outcome": outcome, "counts": counts, "error": _line(problem)}
        return Gone(outcome)

    def _row(self, claimed: Claimed, question: Question, prompt: Prompt, number: int, key: str) -> dict[str, Any]:
        role, round, sample = question.slot
        return {
            "id": self.tools.writer.next_id(),
            "work": claimed.work,
            "fence": claimed.fence,
            "campaign": self.plan.campaign,
            "pair": claimed.pair,
            "judge": question.judge.id,
            "prompt": self.plan.prompt_ids[prompt.name, prompt.sha256],
            "role": role,
            "round": round,
            "sample": sample,
            "number": number,
            "outcome": "error",
            "counts": False,
            "cached": False,
            "verdict": None,
            "reason": "",
            "quotes": [],
            "error": "",
            "status": None,
            "finish": "",
            "tokens_in": 0,
            "tokens_cached": 0,
            "tokens_out": 0,
            "tokens_reasoning": 0,
            "cost": 0.0,
            "ms": 0,
            "key": key,
            "started": datetime.now(UTC).isoformat(),
            "holder": self.tools.holder,
            "usd": 0.0,
            "calls": 0,
        }

    def _upper_bound(self, question: Question, prompt: Prompt) -> float:
        price = self.plan.prices[question.judge.id]
        if price is None or not self.budget.bounded:
            return 0.0
        tokens = _tokens_bound(question, prompt)
        output = question.judge.max_output_tokens
        return price.cost(Usage(input=tokens - output, output=output))

    def _check(self, claimed: Claimed) -> None:
        if self.stopped() or claimed.lost:
            raise Stopped


def _tokens_bound(question: Question, prompt: Prompt) -> int:
    """No tokenizer makes more tokens than there are bytes; the schema counts as well."""
    sent = len(prompt.system.encode()) + len(prompt.user.encode()) + len(repr(question.schema))
    return sent + OVERHEAD_TOKENS + question.judge.max_output_tokens


def _cached(row: dict[str, Any], known: Answer) -> Attempted:
    turn = known.turn
    quotes = [{"text": quote.text, "start": quote.start, "end": quote.end} for quote in turn.quotes]
    row |= {"outcome": "labelled", "counts": True, "cached": True, "verdict": turn.verdict, "reason": turn.reason}
    row |= {"quotes": quotes, "finish": known.finish_reason, "status": known.status}
    return Attempted(row, known.messages, known.raw)


def _pack(messages: list[tuple[str, str]]) -> bytes:
    rendered = [{"role": role, "content": content} for role, content in messages]
    return zlib.compress(json.dumps(rendered, ensure_ascii=False).encode("utf-8", "replace"), 1)


def _line(text: str) -> str:
    return " ".join(text.replace("\0", "\ufffd").split())[:1000]
