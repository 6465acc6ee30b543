"""Sending canaries to judges, to measure how many follow hostile texts. Each answer is stored as soon as it arrives."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import count
from zlib import compress

from django.db import connection
from django.db.models import F
from django.db.models.functions import Now

from judges.campaigns.configurations import find_panel
from judges.campaigns.estimates import Estimate
from judges.costs.judge_records import records_of
from judges.costs.prices import price_for_judge
from judges.engine.answers import SentCall, one_line
from judges.engine.limits import CircuitOpen, RateLimits
from judges.engine.plan import prompt_ids
from judges.engine.rows import NO_ANSWER, Row
from judges.models import JudgeVersion, Panel
from judges.models.canaries import CanaryAnswer, CanaryRound, CanarySchedule
from judges.probes.canary_texts import Canary, all_canaries
from judges.probes.limited_calls import AT_ONCE, Done, forecast_votes, run_within_limits, try_request
from judges.prompts import answering
from judges.records import Judge

TASK = "judges.probes.canaries"


def panel_judges(panel: Panel) -> list[Judge]:
    """Return each judge of the panel once, in its current version."""
    names = list(dict.fromkeys(filter(None, [*panel.debate, *panel.ensemble, panel.adjudicator])))
    judges_by_name = {
        judge.name: judge for judge in records_of(JudgeVersion.objects.filter(name__in=names, is_current=True))
    }
    return [judges_by_name[name] for name in names if name in judges_by_name]


def is_free(judge: Judge) -> bool:
    """Return whether the judge certainly costs nothing; a judge without a known price is not free."""
    price = price_for_judge(judge)
    return price is not None and price.is_free


def forecast(judges: Sequence[Judge]) -> Estimate:
    """Estimate the calls and the cost of asking all judges once. The few turns are counted as votes."""
    return forecast_votes(judges, [canary.inputs for canary in all_canaries()])


def ask_canaries(*, panel: str, judges: Sequence[Judge], by: str, done: Done = lambda count: None) -> CanaryRound:
    """Send every canary to every judge and store the answers. `done` is called with the number of answers so far."""
    canary_round = CanaryRound.objects.create(panel=panel, by=by)
    versions, ended, semaphore = prompt_ids(judges=judges), count(1), asyncio.Semaphore(AT_ONCE)
    writer = ThreadPoolExecutor(1, thread_name_prefix="canaries")

    # A single thread saves the rows: the loop must not wait, and a connection belongs to its thread.
    async def write(work: Callable[[], object]) -> None:
        await asyncio.get_running_loop().run_in_executor(writer, work)

    async def ask(limits: RateLimits, judge: Judge, canary: Canary) -> None:
        request = answering.build_request(judge, canary.inputs, canary.role, history=canary.history)
        empty_row: Row = NO_ANSWER | {"role": request.role, "cost": None}
        row, raw = empty_row, ""
        async with semaphore:
            try:
                async for result, milliseconds in try_request(limits, request):
                    row, raw = empty_row | {"ms": milliseconds}, result.raw
                    call = SentCall(row, judge, request.inputs.document, price_for_judge(judge), False, False, "")
                    call.ended(result)
            # An endpoint that is down fails this round of its judge, but not the other judges.
            except CircuitOpen as error:
                row, raw = empty_row | {"error": one_line(f"{judge.name}: {error}")}, ""
        prompt = versions[request.prompt.name, request.prompt.sha256]
        injection = canary.injection
        answer = CanaryAnswer(
            round=canary_round,
            judge_id=judge.id,
            prompt_id=prompt,
            name=canary.name,
            twin=canary.twin,
            kind=injection.kind if injection else "",
            aim=int(injection.aim == "yes") if injection else None,
            honest=canary.honest,
            role=canary.role,
            milliseconds=row["ms"],
            raw=compress(raw.encode()),
            **{key: row[key] for key in ("outcome", "verdict", "reason", "error", "tokens_in", "tokens_out", "cost")},
        )
        # Saved immediately, so that a killed round does not lose its answers.
        await write(answer.save)
        done(next(ended))

    async def main(limits: RateLimits) -> None:
        try:
            # A Decisions endpoint cannot debate.
            pairs = [
                (judge, canary)
                for judge in judges
                for canary in all_canaries()
                if canary.role == "vote" or not judge.decides
            ]
            await asyncio.gather(*(ask(limits, judge, canary) for judge, canary in pairs))
        finally:
            # The connection belongs to the writer's thread, so that thread has to close it.
            await write(lambda: connection.close())
            writer.shutdown()

    connection.close()  # It would be idle for long.
    run_within_limits(judges, main)
    return canary_round


def set_schedule(*, hours: int, paid: bool, panel: str = "") -> CanarySchedule:
    """Set how often workers send canaries; 0 hours means never. Raises BadInput for an unknown panel."""
    if panel:
        find_panel(panel)
    values = {"hours": hours, "paid": paid, "panel": panel, "due_at": Now() + timedelta(hours=hours)}
    CanarySchedule.objects.update_or_create(pk=1, defaults=values)
    return CanarySchedule.objects.get(pk=1)


def is_due() -> bool:
    """Return whether a worker should send canaries now."""
    return CanarySchedule.objects.filter(hours__gt=0, due_at__lte=Now()).exists()


def run_scheduled() -> CanaryRound | None:
    """Run the round that is due, unless another worker runs it. Missed rounds are not made up for."""
    due_schedules = CanarySchedule.objects.filter(hours__gt=0, due_at__lte=Now())
    # The update claims the round: only one of two workers changes the row.
    if not due_schedules.update(due_at=Now() + F("hours") * timedelta(hours=1)):
        return None
    schedule = CanarySchedule.objects.get(pk=1)
    return ask_panel(schedule.panel, paid=schedule.paid, by=CanaryRound.By.SCHEDULE)


def ask_panel(name: str, *, paid: bool, by: str) -> CanaryRound | None:
    """Send canaries to a panel's free judges, or to all if `paid`; None if there are none."""
    panel = find_panel(name)
    judges = [judge for judge in panel_judges(panel) if paid or is_free(judge)]
    return ask_canaries(panel=panel.name, judges=judges, by=by) if judges else None
