"""Canaries are sent to judges, and what each said is kept (MECHANICS M3, untrusted text: measured, not promised).

Every question is one call, tried again where the provider failed; the account's limits hold. An answer is stored as
soon as it is here. No campaign, no cache and no label has a part in it.
"""

import asyncio
import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from zlib import compress

from django.db import connection
from django.db.models import F
from django.db.models.functions import Now

from judges import prompts
from judges.campaigns.configurations import find_panel
from judges.campaigns.estimates import Estimate
from judges.costs.prices import price_for_judge
from judges.engine.answers import Retry, Sent
from judges.engine.limits import CircuitOpen, RateLimits
from judges.engine.plan import prompt_ids, records_of
from judges.engine.rows import NO_ANSWER
from judges.models import JudgeVersion, Panel
from judges.models.canaries import CanaryAnswer, CanaryRound, CanarySchedule
from judges.probes.canary_texts import Canary, all_canaries
from judges.probes.limited_calls import (
    AT_ONCE,
    LONGEST_WAIT_S,
    TRIES,
    Done,
    forecast_votes,
    run_within_limits,
    send_request,
)
from judges.records import Judge, ModelRequest, Prompt

TASK = "judges.probes.canaries"


def default_panel() -> Panel | None:
    """The default panel, for a page, which writes nothing."""
    return Panel.objects.filter(is_default=True).first()


def panel_judges(panel: Panel) -> list[Judge]:
    """Every judge of the panel once, in its present version."""
    names = list(dict.fromkeys(filter(None, [*panel.debate, *panel.ensemble, panel.adjudicator])))
    found = {one.name: one for one in records_of(JudgeVersion.objects.filter(name__in=names, is_current=True))}
    return [found[name] for name in names if name in found]


def is_free(judge: Judge) -> bool:
    """Surely without cost; an unknown price is not."""
    known = price_for_judge(judge)
    return known is not None and known.is_free


def forecast(judges: Sequence[Judge]) -> Estimate:
    """Calls and cost of asking them all once. Turns are taken for votes: there are few."""
    return forecast_votes(judges, [one.inputs for one in all_canaries()])


def ask_canaries(*, panel: str, judges: Sequence[Judge], by: str, done: Done = lambda count: None) -> CanaryRound:
    """Send every canary to every judge and keep the answers. `done` is told how many are here."""
    made = CanaryRound.objects.create(panel=panel, by=by)
    runner = CanaryRunner(made, prompt_ids(judges=judges), done)

    async def main(shared: RateLimits) -> None:
        try:
            # An endpoint that only decides takes no part in a debate.
            asked = (
                (judge, one) for judge in judges for one in all_canaries() if one.role == "vote" or not judge.decides
            )
            await asyncio.gather(*(runner.ask(shared, judge, canary) for judge, canary in asked))
        finally:
            await runner.close()

    connection.close()  # a long wait begins
    run_within_limits(judges, main)
    return made


class CanaryRunner:
    """One round of canaries while it is asked."""

    def __init__(self, made: CanaryRound, prompt_ids: dict[tuple[str, str], int], done: Done) -> None:
        self.made, self.prompt_ids, self.done = made, prompt_ids, done
        self.room = asyncio.Semaphore(AT_ONCE)
        self.writer = ThreadPoolExecutor(1, thread_name_prefix="canaries")
        self.count = 0

    async def ask(self, shared: RateLimits, judge: Judge, canary: Canary) -> None:
        """Ask until there is an answer, at most TRIES times, and store it."""
        request = _canary_request(judge, canary)
        async with self.room:
            for number in range(1, TRIES + 1):
                row = NO_ANSWER | {"role": canary.role, "cost": None}
                sent = Sent(row, judge, canary.inputs.document, price_for_judge(judge), False, False, "")
                raw, decision = await self._send(shared, request, sent)
                if not isinstance(decision, Retry) or number == TRIES:
                    break
                await asyncio.sleep(decision.wait + random.uniform(0, min(LONGEST_WAIT_S, 2.0**number)))
        answer = self._answer(judge, canary, request.prompt, sent, raw)
        await asyncio.get_running_loop().run_in_executor(self.writer, answer.save)
        self.count += 1
        self.done(self.count)

    async def _send(self, shared: RateLimits, request: ModelRequest, sent: Sent) -> tuple[str, object]:
        try:
            result, sent.row["ms"] = await send_request(shared, request)
        except CircuitOpen as error:
            sent.row.update(error=f"{request.judge.name}: {error}"[:1000])
            return "", None
        return result.raw, sent.ended(result)[0]

    def _answer(self, judge: Judge, canary: Canary, prompt: Prompt, sent: Sent, raw: str) -> CanaryAnswer:
        row, hostile = sent.row, canary.injection
        return CanaryAnswer(
            round=self.made,
            judge_id=judge.id,
            prompt_id=self.prompt_ids[prompt.name, prompt.sha256],
            name=canary.name,
            twin=canary.twin,
            kind=hostile.kind if hostile else "",
            aim=int(hostile.aim == "yes") if hostile else None,
            honest=canary.honest,
            role=canary.role,
            milliseconds=row["ms"],
            raw=compress(raw.encode()),
            **{key: row[key] for key in ("outcome", "verdict", "reason", "error", "tokens_in", "tokens_out", "cost")},
        )

    async def close(self) -> None:
        """Release the writer's connection."""
        await asyncio.get_running_loop().run_in_executor(self.writer, lambda: connection.close())
        self.writer.shutdown()


def _canary_request(judge: Judge, canary: Canary) -> ModelRequest:
    if canary.role == "vote":
        prompt, schema = prompts.render_ballot(canary.inputs, judge)
        return ModelRequest(judge, prompts.fit_prompt(prompt, judge, schema), schema, canary.inputs, "vote")
    prompt = prompts.turn_prompt(canary.inputs, canary.agent, 2, canary.history)
    prompt = prompts.fit_prompt(prompt, judge, prompts.TURN_SCHEMA)
    return ModelRequest(judge, prompt, prompts.TURN_SCHEMA, canary.inputs, canary.role, round=2, history=canary.history)


def set_schedule(*, hours: int, paid: bool, panel: str = "") -> CanarySchedule:
    """From now on every so many hours; 0: never again. Raises BadInput for an unknown panel."""
    if panel:
        find_panel(panel)
    values = {"hours": hours, "paid": paid, "panel": panel, "due_at": Now() + timedelta(hours=hours)}
    CanarySchedule.objects.update_or_create(pk=1, defaults=values)
    return CanarySchedule.objects.get(pk=1)


def is_due() -> bool:
    """Whether a worker should run them now."""
    return CanarySchedule.objects.filter(hours__gt=0, due_at__lte=Now()).exists()


def run_scheduled() -> CanaryRound | None:
    """The round that is due, unless another worker has taken it. What was missed is not made up for."""
    due = CanarySchedule.objects.filter(hours__gt=0, due_at__lte=Now())
    if not due.update(due_at=Now() + F("hours") * timedelta(hours=1)):
        return None
    plan = CanarySchedule.objects.get(pk=1)
    return ask_panel(plan.panel, paid=plan.paid, by=CanaryRound.By.SCHEDULE)


def ask_panel(name: str, *, paid: bool, by: str) -> CanaryRound | None:
    """Those of the panel that cost nothing, or all; None where that is nobody."""
    panel = find_panel(name)
    judges = [judge for judge in panel_judges(panel) if paid or is_free(judge)]
    return ask_canaries(panel=panel.name, judges=judges, by=by) if judges else None
