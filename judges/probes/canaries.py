"""Canaries are sent to judges, and what each said is kept (untrusted text: measured, not promised).

An answer is stored as soon as it is here.
"""

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
from judges.costs.prices import price_for_judge
from judges.engine.answers import Sent, one_line
from judges.engine.limits import CircuitOpen, RateLimits
from judges.engine.plan import prompt_ids, records_of
from judges.engine.rows import NO_ANSWER, Row
from judges.models import JudgeVersion, Panel
from judges.models.canaries import CanaryAnswer, CanaryRound, CanarySchedule
from judges.probes.canary_texts import Canary, all_canaries
from judges.probes.limited_calls import AT_ONCE, Done, forecast_votes, run_within_limits, try_request
from judges.prompts import answering
from judges.records import Judge, ModelRequest

TASK = "judges.probes.canaries"


def panel_judges(panel: Panel) -> list[Judge]:
    """Return each judge of the panel once, in its current version."""
    # A judge that debates and votes is asked once.
    names = list(dict.fromkeys(filter(None, [*panel.debate, *panel.ensemble, panel.adjudicator])))
    found = {one.name: one for one in records_of(JudgeVersion.objects.filter(name__in=names, is_current=True))}
    return [found[name] for name in names if name in found]


def is_free(judge: Judge) -> bool:
    """Return whether the judge is sure to cost nothing; one without a known price is not."""
    known = price_for_judge(judge)
    return known is not None and known.is_free


def forecast(judges: Sequence[Judge]) -> Estimate:
    """Estimate the calls and the cost of asking all judges once. Turns are taken for votes: there are few."""
    return forecast_votes(judges, [one.inputs for one in all_canaries()])


def ask_canaries(*, panel: str, judges: Sequence[Judge], by: str, done: Done = lambda count: None) -> CanaryRound:
    """Send every canary to every judge and keep the answers. `done` is told how many are here."""
    made = CanaryRound.objects.create(panel=panel, by=by)
    versions, ended, room = prompt_ids(judges=judges), count(1), asyncio.Semaphore(AT_ONCE)
    writer = ThreadPoolExecutor(1, thread_name_prefix="canaries")

    # Rows are saved by one thread: the loop must not wait, and a connection belongs to its thread.
    async def write(work: Callable[[], object]) -> None:
        await asyncio.get_running_loop().run_in_executor(writer, work)

    async def ask(shared: RateLimits, judge: Judge, canary: Canary) -> None:
        request = answering.build_request(judge, canary.inputs, canary.role, history=canary.history)
        async with room:
            row, raw = await _send_canary(shared, request)
        prompt = versions[request.prompt.name, request.prompt.sha256]
        # Saved as it comes: a round that is killed keeps what was answered.
        await write(_build_answer(made, canary, judge, prompt, row, raw).save)
        done(next(ended))

    async def main(shared: RateLimits) -> None:
        try:
            # An endpoint that only decides takes no part in a debate.
            asked = [
                (judge, one) for judge in judges for one in all_canaries() if one.role == "vote" or not judge.decides
            ]
            await asyncio.gather(*(ask(shared, judge, one) for judge, one in asked))
        finally:
            # The connection belongs to the writer's thread, so that thread has to close it.
            await write(lambda: connection.close())
            writer.shutdown()

    connection.close()  # a long wait begins
    run_within_limits(judges, main)
    return made


async def _send_canary(shared: RateLimits, request: ModelRequest) -> tuple[Row, str]:
    """Ask until there is an answer; the row of an attempt that the last one makes, and the answer as it came."""
    judge, document = request.judge, request.inputs.document
    first: Row = NO_ANSWER | {"role": request.role, "cost": None}
    row, raw = first, ""
    try:
        async for result, milliseconds in try_request(shared, request):
            row, raw = first | {"ms": milliseconds}, result.raw
            Sent(row, judge, document, price_for_judge(judge), False, False, "").ended(result)
    # An endpoint that is down costs its judge this round, not the others.
    except CircuitOpen as error:
        return first | {"error": one_line(f"{judge.name}: {error}")}, ""
    return row, raw


def _build_answer(made: CanaryRound, canary: Canary, judge: Judge, prompt: int, row: Row, raw: str) -> CanaryAnswer:
    hostile = canary.injection
    return CanaryAnswer(
        round=made,
        judge_id=judge.id,
        prompt_id=prompt,
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


def set_schedule(*, hours: int, paid: bool, panel: str = "") -> CanarySchedule:
    """Set how often workers send canaries; 0 hours: never. Raises BadInput for an unknown panel."""
    if panel:
        find_panel(panel)
    values = {"hours": hours, "paid": paid, "panel": panel, "due_at": Now() + timedelta(hours=hours)}
    CanarySchedule.objects.update_or_create(pk=1, defaults=values)
    return CanarySchedule.objects.get(pk=1)


def is_due() -> bool:
    """Return whether a worker should send canaries now."""
    return CanarySchedule.objects.filter(hours__gt=0, due_at__lte=Now()).exists()


def run_scheduled() -> CanaryRound | None:
    """Run the round that is due, unless another worker has taken it. What was missed is not made up for."""
    due = CanarySchedule.objects.filter(hours__gt=0, due_at__lte=Now())
    # The update is the claim: of two workers one changes the row.
    if not due.update(due_at=Now() + F("hours") * timedelta(hours=1)):
        return None
    plan = CanarySchedule.objects.get(pk=1)
    return ask_panel(plan.panel, paid=plan.paid, by=CanaryRound.By.SCHEDULE)


def ask_panel(name: str, *, paid: bool, by: str) -> CanaryRound | None:
    """Ask the judges of a panel that cost nothing, or all; None where that is nobody."""
    panel = find_panel(name)
    judges = [judge for judge in panel_judges(panel) if paid or is_free(judge)]
    return ask_canaries(panel=panel.name, judges=judges, by=by) if judges else None
