"""Self-checks: asking judges the probes of `judges.probes.known_orders`, without a cache, to compare repetitions."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

from django.utils.translation import gettext as _

from judges.campaigns.estimates import Estimate
from judges.costs.prices import price_for_judge
from judges.domain import verdicts
from judges.engine.limits import CircuitOpen, RateLimits
from judges.errors import ProviderError
from judges.probes.checks import cost_of_result
from judges.probes.known_orders import Findings, Grade, Probe, count_findings
from judges.probes.limited_calls import AT_ONCE, Done, forecast_votes, run_within_limits, try_request
from judges.prompts import answering
from judges.records import Inputs, Judge, Reply


@dataclass(slots=True)
class SelfCheckResult:
    """A judge under self-check: its grades, cost, and first error."""

    judge: Judge
    grades: dict[tuple[str, int], list[Grade]] = field(default_factory=dict)
    cost: float | None = 0.0  # USD; None if the price of a call is unknown.
    calls: int = 0
    error: str = ""

    def book(self, result: Reply | ProviderError) -> None:
        """Count another call and its cost."""
        self.calls += 1
        if isinstance(result, ProviderError):
            self.error = self.error or str(result)
        call_cost = cost_of_result(self.judge, result, price_for_judge(self.judge))
        self.cost = None if call_cost is None or self.cost is None else self.cost + call_cost


def forecast(judges: Sequence[Judge], probes: Sequence[Probe], repeats: int) -> Estimate:
    """Estimate the calls and the cost of asking all judges."""
    return forecast_votes(judges, [inputs for probe in probes for _, inputs in probe.documents], repeats)


def self_check(
    judges: Sequence[Judge], probes: Sequence[Probe], *, repeats: int = 2, done: Done = lambda count: None
) -> list[tuple[SelfCheckResult, Findings]]:
    """Ask every judge about every document, `repeats` times. `done` is called with the number of answers so far."""
    answer_count = count(1)

    async def ask_judge(limits: RateLimits, judge: Judge) -> SelfCheckResult:
        # One semaphore for each judge, so that a slow one does not delay the others.
        result, semaphore = SelfCheckResult(judge), asyncio.Semaphore(AT_ONCE)

        async def ask(document_key: tuple[str, int], inputs: Inputs, sample: int) -> tuple[tuple[str, int], Grade]:
            async with semaphore:
                grade = await _ask_vote(limits, result, inputs, sample)
            done(next(answer_count))
            return document_key, grade

        documents = [
            ((probe.name, number), inputs) for probe in probes for number, (_, inputs) in enumerate(probe.documents)
        ]
        calls = [ask(document_key, inputs, sample) for document_key, inputs in documents for sample in range(repeats)]
        for document_key, grade in await asyncio.gather(*calls):
            result.grades.setdefault(document_key, []).append(grade)
        return result

    async def main(limits: RateLimits) -> list[SelfCheckResult]:
        return list(await asyncio.gather(*(ask_judge(limits, judge) for judge in judges)))

    results = run_within_limits(judges, main)
    return [(result, count_findings(probes, result.grades)) for result in results]


async def _ask_vote(limits: RateLimits, judge_result: SelfCheckResult, inputs: Inputs, sample: int) -> Grade:
    grade: Grade = None
    try:
        async for result, _milliseconds in try_request(
            limits, answering.build_request(judge_result.judge, inputs, "vote", sample=sample)
        ):
            judge_result.book(result)
            grade = _read_grade(judge_result, result) if isinstance(result, Reply) else None
    except CircuitOpen as error:
        judge_result.error = judge_result.error or str(error)
    return grade


def _read_grade(judge_result: SelfCheckResult, reply: Reply) -> Grade:
    """Return the grade on the judge's own scale; None if the answer is no verdict."""
    if reply.refused or reply.truncated:
        judge_result.error = judge_result.error or (_("it refused") if reply.refused else _("its answer was cut"))
        return None
    if not reply.ended:
        words = _("its answer ended with %(reason)s, which does not end an answer")
        judge_result.error = judge_result.error or words % {"reason": reply.finish_reason}
        return None
    try:
        turn = verdicts.parse_answer("vote", reply.text, "", judge_result.judge)
    except verdicts.Unusable as error:
        judge_result.error = judge_result.error or _("its answer does not follow the schema (%(error)s)") % {
            "error": error
        }
        return None
    return turn.verdict if turn.score is None else turn.score
