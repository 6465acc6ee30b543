"""Interpretation of a model's answer: the turn or vote that it means, and the row that it becomes.

Everything needed for this is known when the call is sent. So the worker that sent the call, and one
that finds the answer in a dead worker's pending-answer log, produce the same row.
"""

import asyncio
import json
import logging
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from judges.costs.prices import Price, answering_model, call_cost, price_of_reply
from judges.domain import prompt_sizes, verdicts
from judges.domain.probabilities import answer_probabilities
from judges.domain.verdicts import NoVerdict, ParsingRules, unwrap_answer
from judges.engine.pending_answers import orphaned_files
from judges.engine.rows import AttemptRow, Row
from judges.engine.writer import ResultWriter
from judges.errors import ProviderError, Refused, Rejected
from judges.prompts.answers import evidence as writings
from judges.prompts.answers import formats
from judges.prompts.answers import retrieval as answers
from judges.providers import load_provider, open_provider
from judges.records import CONVERSATIONS, RETRIEVAL, TEXT_ROLES, Body, Judge, Reply, Turn

GATEWAYS = ("openai-compatible", "litellm", "openrouter")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Retry:
    """Decision to ask again: after `wait` seconds if no answer came, otherwise with the bad answer's `problem`."""

    wait: float = 0.0
    problem: str = ""


Decision = Turn | NoVerdict | Retry


@dataclass(frozen=True, slots=True)
class SentCall:
    """A call that was sent, with everything needed to turn its answer into a row and a decision."""

    row: Row
    judge: Judge
    document: str
    price: Price | None
    strict: bool  # Policy `single`: an answer without a verdict is no vote, the pair fails.
    may_repair: bool
    messages: str  # JSON, as they are sent.
    expected: dict[str, Any] = field(default_factory=dict)  # What the answer of a conversation's step is checked by.
    # The team's prices of the provider's other models, by name.
    table: dict[str, Price] = field(default_factory=dict)
    batch: bool = False
    offset: int = 0  # Where `document`, a window, begins in the whole document.

    def ended(self, result: Reply | ProviderError) -> tuple[Decision, AttemptRow]:
        """Return the decision that an answer means, and the attempt's row with the raw body."""
        decision: Decision
        if isinstance(result, ProviderError):
            paid = 0.0 if self.price is not None and (self.price.is_free or not result.billed) else None
            if result.reply is not None:
                self._book(result.reply)
                paid = self.row["cost"]
            self.row.update(outcome="error", error=one_line(str(result)), status=result.status, cost=paid)
            if result.retry:
                decision = Retry(result.retry_after or 0.0)
            # A provider that declines this one call is a judge without a vote; the account's refusals are nobody's.
            elif isinstance(result, Rejected) and not isinstance(result, Refused) and result.status is not None:
                decision = self._no_verdict("refused", str(result))
            else:
                decision = NoVerdict("error")
        else:
            decision = self._reply(result)
        return decision, AttemptRow(self.row, self.messages, result.raw)

    def _book(self, reply: Reply) -> None:
        usage = reply.usage
        price = price_of_reply(self.judge, reply, self.price, self.table, batch=self.batch)
        self.row.update(
            answered_by=answering_model(self.judge, reply),
            tokens_in=usage.input,
            tokens_cached=usage.cached,
            tokens_written=usage.written,
            tokens_out=usage.output,
            tokens_reasoning=usage.reasoning,
            cost=call_cost(price, usage, reply.bill),
        )

    def _reply(self, reply: Reply) -> Decision:
        answer, reasoning = unwrap_answer(reply.text, self.judge.unwrap)
        self.row.update(status=reply.status, finish=reply.finish_reason[:50], reasoning=reply.reasoning or reasoning)
        self._book(reply)
        # A refused or cut answer is not parsed at all: a verdict within it would be a guess.
        if reply.refused:
            return self._no_verdict("refused", "refused")
        if problem := self._cut_prompt(reply):
            return self._no_verdict("prompt_cut", problem)
        if reply.truncated:
            loops = verdicts.repeats_itself(reply.text)
            remedy = "it repeats itself: take another model or temperature" if loops else "raise it"
            problem = f"truncated at max_output_tokens = {self.judge.max_output_tokens}: {remedy}"
            return self._no_verdict("truncated", problem)
        # Even complete JSON is no answer after such an end, and a repair would be paid for in vain.
        if reply.finish_reason == "failed":
            self.row.update(outcome="error", error="the server broke off its answer")
            return Retry()
        if not reply.ended:
            return self._no_verdict("unparsed", f"it ended with {reply.finish_reason}, which is no end of an answer")
        try:
            return self._turn(reply, start=reply.text.rfind(answer))
        # Raised by the parser for an answer that is no verdict. The judge is asked once more, and told what was wrong.
        except verdicts.Unusable as error:
            if not self.may_repair:
                return self._no_verdict(error.outcome, str(error))
            self.row.update(outcome=error.outcome, error=one_line(str(error)))
            return Retry(problem=str(error))
        except Exception as error:  # our fault, not the answer's: the answer that was paid for is stored all the same
            logger.exception("an answer of %s cannot be read", self.judge.name)
            self.row.update(outcome="error", error=describe_own_fault(error))
            return NoVerdict("error")

    def _cut_prompt(self, reply: Reply) -> str:
        """Describe a prompt that the server did not read to its end; "" if it did."""
        usage = reply.usage
        if not (self.judge.preset.asks and usage.said and self.messages):
            return ""
        text = "\n".join(message["content"] for message in json.loads(self.messages))
        counted = usage.input
        # Gateways may count what came from a cache apart, as Anthropic does.
        if self.judge.preset.name in GATEWAYS:
            counted += usage.cached + usage.written
        if not (reply.prompt_cut or prompt_sizes.is_cut(text, counted, self.judge.max_output_tokens)):
            return ""
        # A high estimate of the tokens: one per four ASCII characters, and one per other character.
        ascii_count = sum(character.isascii() for character in text)
        estimate = ascii_count // 4 + len(text) - ascii_count
        needed = prompt_sizes.context_for(estimate, self.judge.max_output_tokens)
        return (
            f"the server read {usage.input:,} tokens of a prompt that has {prompt_sizes.least_tokens(text):,} at "
            f"least, and cut the rest: set its context length to {needed:,} tokens or more"
        )

    def _turn(self, reply: Reply, start: int) -> Turn:
        """Parse the turn in the reply, whose JSON begins at `start` of the text, after the reasoning.

        Raises verdicts.Unusable.
        """
        role, rules = self.row["role"], ParsingRules.of(self.judge)
        if role in TEXT_ROLES:
            turn = writings.parse_answer(role, reply.text, self.document, rules)
        elif role in RETRIEVAL:
            turn = answers.parse_answer(role, reply.text, self.row["documents"], rules)
        elif role in CONVERSATIONS:
            turn = formats.parse_answer(role, reply.text, rules, self.expected)
        else:
            turn = verdicts.parse_answer(role, reply.text, self.document, self.judge)
        if self.offset:
            turn = replace(turn, quotes=tuple(quote.moved(self.offset) for quote in turn.quotes))
        if reply.probabilities or reply.tokens:
            shares = reply.probabilities or answer_probabilities(
                reply.text, reply.tokens, turn.verdict, turn.score, start
            )
            turn = replace(turn, probabilities=shares)
        quotes = [asdict(quote) for quote in turn.quotes]
        # Texts (evidence, entities, scores) say nothing about relevance. Their turn's verdict is a
        # placeholder, which would count as a vote if it were stored.
        verdict = None if role in TEXT_ROLES else turn.verdict
        self.row.update(outcome="labelled", counts=True, verdict=verdict, reason=turn.reason, quotes=quotes)
        self.row.update(score=turn.score, probabilities=turn.probabilities)
        return turn

    def _no_verdict(self, outcome: str, problem: str) -> NoVerdict:
        # Under `single` one missing vote decides the pair, so it is left uncounted and a later retry asks again.
        counts = not (self.strict and self.row["role"] == "vote")
        self.row.update(outcome=outcome, counts=counts, error=one_line(problem))
        return NoVerdict(outcome)


SENT_CALL = TypeAdapter(SentCall)  # Ten times as fast as `asdict`.


def dump_answer(call: SentCall, body: Body) -> bytes:
    return json.dumps({**SENT_CALL.dump_python(call), "body": asdict(body)}).encode()


def load_answer(line: bytes) -> tuple[SentCall, Body]:
    """Return the call and body of a line of `dump_answer`. Raises ValueError for a line that a kill cut off."""
    record: dict[str, Any] = json.loads(line)
    # The account's rate was that of the moment.
    return SENT_CALL.validate_python(record), Body(**{**record["body"], "rate": None})


def one_line(text: str) -> str:
    """Return the text on one line of at most 1,000 characters, without the NUL that PostgreSQL refuses."""
    return " ".join(text.replace("\0", "\ufffd").split())[:1000]


def describe_own_fault(error: BaseException) -> str:
    """Return the sentence that people read about an error in Quorum itself."""
    return one_line(f"Quorum itself failed at this, and its log says where ({error})")


async def recover_answers(writer: ResultWriter, folder: Path) -> int:
    """Store the answers in the files of dead processes; return their number."""
    count = 0
    with ExitStack() as stack:
        # In a thread: another process may hold the lock, and the loop must not stop meanwhile.
        for path in await asyncio.to_thread(stack.enter_context, orphaned_files(folder)):
            calls = []
            for line in path.read_bytes().splitlines():
                with suppress(ValueError, TypeError, KeyError):  # the last line, cut off by the kill
                    calls.append(load_answer(line))
            attempts = [call.ended(await interpret_body(call.judge, body))[1] for call, body in calls]
            results = await asyncio.gather(*map(writer.write, attempts), return_exceptions=True)
            for attempt, error in zip(attempts, results, strict=True):
                if error is not None:  # its campaign is deleted: nobody will pay for it again
                    message = one_line(str(error).partition("\n")[0])
                    fields = {"pair": attempt.row.get("pair")}
                    logger.error("an answer of a dead worker cannot be stored: %s", message, extra=fields)
            path.unlink(missing_ok=True)
            count += len(attempts)
    return count


async def interpret_body(judge: Judge, body: Body) -> Reply | ProviderError:
    """Return the reply or error that the judge's provider reads from a stored body."""
    await asyncio.to_thread(load_provider, judge.provider)
    try:
        return open_provider(judge).meaning(body, judge)
    except ProviderError as error:
        return error
    except Exception as error:
        return unexpected_error(error, body)


def unexpected_error(error: Exception, body: Body | None) -> ProviderError:
    """Return an unexpected exception of an SDK or of our own code as an error of the attempt, with the body if any."""
    # Billed, as far as we know: the body came, and only our reading of it failed.
    failure = ProviderError(describe_own_fault(error), raw=body.text if body else "")
    if body is not None:
        failure.status, failure.billed = body.status, True
    return failure
