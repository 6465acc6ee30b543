"""Stored findings of judges' checks, kept with the version that was checked, for pages."""

from collections.abc import Sequence
from typing import Any

from django.db import transaction

from judges.models import JudgeVersion
from judges.models.probes import JudgeProbe
from judges.probes.checks import CheckedJudge

# The findings that a page shows.
SHOWN = (
    *("schema_modes", "logprobs", "temperature", "temperature_taken", "thinks"),
    *("reasoning_tokens", "reasoning_text", "context", "ends", "price"),
)


@transaction.atomic
def store_results(results: Sequence[CheckedJudge]) -> None:
    """Store the results of probes; rows are only ever added."""
    JudgeProbe.objects.bulk_create(
        JudgeProbe(
            judge_id=result.judge.id,
            passes=not result.problem,
            problem=result.problem,
            warnings=list(result.warnings),
            found=result.found,
            calls=result.calls,
            cost=result.cost,
            seconds=result.seconds,
        )
        for result in results
    )


def judge_abilities() -> list[dict[str, Any]]:
    """Return each configured judge with its latest probe and findings, which are None if it was never checked."""
    # Offline judges need no check and are omitted.
    judges = JudgeVersion.objects.filter(is_current=True).exclude(provider="offline")
    latest_probes = JudgeProbe.objects.filter(judge__in=judges).order_by("judge", "-id").distinct("judge")
    probes = {probe.judge_id: probe for probe in latest_probes}
    findings = {key: {**dict.fromkeys(SHOWN), **probe.found} for key, probe in probes.items()}
    rows = judges.order_by("name")
    return [{"judge": judge, "probe": probes.get(judge.pk), "found": findings.get(judge.pk)} for judge in rows]
