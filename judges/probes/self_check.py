"""Ask judges what `judges.probes.known_orders` wants to know. The account's limits hold; no campaign, cache or label
has a part.

Every question is one call, tried again where the provider failed. Each is asked anew each time: that is the point.
"""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from django.conf import settings
from django.utils.translation import gettext as _

from judges import prompts
from judges.campaigns.estimates import Estimate
from judges.costs.prices import call_cost, price_for_judge
from judges.domain import verdicts
from judges.engine.limits import CircuitOpen, RateLimits
from judges.errors import ProviderError
from judges.probes.known_orders import Findings, Grade, Probe, count_findings
from judges.probes.limited_calls import (
    AT_ONCE,
    LONGEST_WAIT_S,
    TRIES,
    Done,
    forecast_votes,
    run_within_limits,
    send_request,
)
from judges.records import Inputs, Judge, ModelRequest, Reply


@dataclass(slots=True)
class SelfCheckResult:
    """One judge on its way: its grades, what it cost, and the first thing that went wrong."""

    judge: Judge
    grades: dict[tuple[str, int], list[Grade]] = field(default_factory=dict)
    cost: float | None = 0.0  # USD; None: a call's price is unknown.
    calls: int = 0
    error: str = ""

    def paid(self, reply: Reply) -> None:
        """Add what one more answer cost."""
        paid = call_cost(price_for_judge(self.judge), reply.usage)
        self.cost = None if paid is None or self.cost is None else self.cost + paid


def forecast(judges: Sequence[Judge], probes: Sequence[Probe], repeats: int) -> Estimate:
    """Calls and cost of asking them all."""
    return forecast_votes(judges, [inputs for probe in probes for _, inputs in probe.documents], repeats)


def self_check(
    judges: Sequence[Judge], probes: Sequence[Probe], *, repeats: int = 2, done: Done = lambda count: None
) -> list[tuple[SelfCheckResult, Findings]]:
    """Ask every judge every document so many times. `done` is told how many answers are here."""
    runner = _SelfCheckRunner(repeats, done)

    async def main(shared: RateLimits) -> list[SelfCheckResult]:
        return list(await asyncio.gather(*(runner.ask_judge(shared, judge, probes) for judge in judges)))

    results = run_within_limits(judges, main)
    return [(checked, count_findings(probes, checked.grades)) for checked in results]


class _SelfCheckRunner:
    """All questions of one self-check."""

    def __init__(self, repeats: int, done: Done) -> None:
        self.repeats, self.done = repeats, done
        self.count = 0

    async def ask_judge(self, shared: RateLimits, judge: Judge, probes: Sequence[Probe]) -> SelfCheckResult:
        """One judge's answers to everything; a slow one holds up no other."""
        checked, room = SelfCheckResult(judge), asyncio.Semaphore(AT_ONCE)
        places = [(probe.name, at, inputs) for probe in probes for at, (_, inputs) in enumerate(probe.documents)]
        asked = [(name, at, inputs, sample) for name, at, inputs in places for sample in range(self.repeats)]
        grades = await asyncio.gather(*(self._ask(shared, room, checked, inputs, n) for _, _, inputs, n in asked))
        for (name, at, _inputs, _sample), grade in zip(asked, grades, strict=True):
            checked.grades.setdefault((name, at), []).append(grade)
        return checked

    async def _ask(
        self, shared: RateLimits, room: asyncio.Semaphore, checked: SelfCheckResult, inputs: Inputs, sample: int
    ) -> Grade:
        """Ask until there is an answer, at most TRIES times; None: no verdict."""
        prompt, schema = prompts.render_ballot(inputs, checked.judge)
        prompt = prompts.fit_prompt(prompt, checked.judge, schema)
        request = ModelRequest(checked.judge, prompt, schema, inputs, "vote", sample=sample)
        grade: Grade = None
        async with room:
            for number in range(1, TRIES + 1):
                try:
                    grade = _read_grade(checked, await _send_counted(shared, request, checked))
                except (ProviderError, CircuitOpen) as error:
                    checked.error = checked.error or str(error)
                    if number < TRIES and isinstance(error, ProviderError) and error.retry:
                        wait = random.uniform(0, min(LONGEST_WAIT_S, settings.RETRY_SECONDS * 2**number))
                        await asyncio.sleep((error.retry_after or 0.0) + wait)
                        continue
                break
        self.count += 1
        self.done(self.count)
        return grade


async def _send_counted(shared: RateLimits, request: ModelRequest, checked: SelfCheckResult) -> Reply:
    """One call, counted with what it costs. Raises ProviderError, CircuitOpen."""
    result, _milliseconds = await send_request(shared, request)
    checked.calls += 1
    if isinstance(result, ProviderError):
        if result.billed:
            checked.cost = None
        raise result
    checked.paid(result)
    return result


def _read_grade(checked: SelfCheckResult, reply: Reply) -> Grade:
    """On the judge's own scale; None for an answer that is no verdict."""
    if reply.refused or reply.truncated:
        checked.error = checked.error or (_("it refused") if reply.refused else _("its answer was cut"))
        return None
    try:
        turn = verdicts.parse_answer("vote", reply.text, "", checked.judge)
    except verdicts.Unusable as error:
        checked.error = checked.error or _("its answer does not follow the schema (%(error)s)") % {"error": error}
        return None
    return turn.verdict if turn.score is None else turn.score
