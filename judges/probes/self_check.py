"""Ask judges what `judges.probes.known_orders` wants to know, anew each time: that is the point."""

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
    """A judge under self-check: its grades, cost, and the first error."""

    judge: Judge
    grades: dict[tuple[str, int], list[Grade]] = field(default_factory=dict)
    cost: float | None = 0.0  # USD; None: a call's price is unknown.
    calls: int = 0
    error: str = ""

    def book(self, result: Reply | ProviderError) -> None:
        """Count one more call with what it cost."""
        self.calls += 1
        if isinstance(result, ProviderError):
            self.error = self.error or str(result)
        paid = cost_of_result(self.judge, result, price_for_judge(self.judge))
        self.cost = None if paid is None or self.cost is None else self.cost + paid


def forecast(judges: Sequence[Judge], probes: Sequence[Probe], repeats: int) -> Estimate:
    """Estimate the calls and the cost of asking all judges."""
    return forecast_votes(judges, [inputs for probe in probes for _, inputs in probe.documents], repeats)


def self_check(
    judges: Sequence[Judge], probes: Sequence[Probe], *, repeats: int = 2, done: Done = lambda count: None
) -> list[tuple[SelfCheckResult, Findings]]:
    """Ask every judge every document so many times. `done` is told how many answers are here."""
    ended = count(1)

    async def ask_judge(shared: RateLimits, judge: Judge) -> SelfCheckResult:
        # A room for each judge: a slow one holds up no other.
        checked, room = SelfCheckResult(judge), asyncio.Semaphore(AT_ONCE)

        async def ask(place: tuple[str, int], inputs: Inputs, sample: int) -> tuple[tuple[str, int], Grade]:
            async with room:
                grade = await _ask_vote(shared, checked, inputs, sample)
            done(next(ended))
            return place, grade

        documents = [((one.name, at), inputs) for one in probes for at, (_, inputs) in enumerate(one.documents)]
        asked = [ask(place, inputs, sample) for place, inputs in documents for sample in range(repeats)]
        for place, grade in await asyncio.gather(*asked):
            checked.grades.setdefault(place, []).append(grade)
        return checked

    async def main(shared: RateLimits) -> list[SelfCheckResult]:
        return list(await asyncio.gather(*(ask_judge(shared, judge) for judge in judges)))

    results = run_within_limits(judges, main)
    return [(checked, count_findings(probes, checked.grades)) for checked in results]


async def _ask_vote(shared: RateLimits, checked: SelfCheckResult, inputs: Inputs, sample: int) -> Grade:
    grade: Grade = None
    try:
        async for result, _milliseconds in try_request(
            shared, answering.build_request(checked.judge, inputs, "vote", sample=sample)
        ):
            checked.book(result)
            grade = _read_grade(checked, result) if isinstance(result, Reply) else None
    except CircuitOpen as error:
        checked.error = checked.error or str(error)
    return grade


def _read_grade(checked: SelfCheckResult, reply: Reply) -> Grade:
    """Read the grade on the judge's own scale; None for an answer that is no verdict."""
    if reply.refused or reply.truncated:
        checked.error = checked.error or (_("it refused") if reply.refused else _("its answer was cut"))
        return None
    if not reply.ended:
        words = _("its answer ended with %(reason)s, which is no end of an answer")
        checked.error = checked.error or words % {"reason": reply.finish_reason}
        return None
    try:
        turn = verdicts.parse_answer("vote", reply.text, "", checked.judge)
    except verdicts.Unusable as error:
        checked.error = checked.error or _("its answer does not follow the schema (%(error)s)") % {"error": error}
        return None
    return turn.verdict if turn.score is None else turn.score
