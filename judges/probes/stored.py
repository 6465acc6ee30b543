"""Stored findings of judges' checks, kept with the version that was checked, for pages."""

from collections.abc import Sequence

from django.db import transaction

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
