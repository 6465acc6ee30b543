"""What checks of judges found, kept with the version that was asked and read back for pages."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from judges.models import JudgeVersion
from judges.models.probes import JudgeProbe
from judges.probes.checks import CheckedJudge

# Of what was found, what a page shows.
SHOWN = (
    "schema_modes",
    "logprobs",
    "temperature",
    "temperature_taken",
    "thinks",
    "reasoning_tokens",
    "reasoning_text",
    "usage",
    "context",
    "price",
)


@transaction.atomic
def store_results(results: Sequence[CheckedJudge]) -> None:
    """Store them; rows are only ever added."""
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


@dataclass(frozen=True, slots=True)
class Ability:
    """A judge's present version and its newest probe; None: it was never checked."""

    judge: JudgeVersion
    probe: JudgeProbe | None

    @property
    def found(self) -> dict[str, Any]:
        """What the probe found, each thing by its name; None where it found nothing out."""
        return {**dict.fromkeys(SHOWN), **(self.probe.found if self.probe else {})}


def judge_abilities(names: Iterable[str]) -> list[Ability]:
    """Of the judges with these names, by name; offline judges need no check and are left out."""
    judges = JudgeVersion.objects.filter(name__in=set(names), is_current=True).exclude(provider="offline")
    newest = JudgeProbe.objects.filter(judge__in=judges).order_by("judge", "-id").distinct("judge")
    found = {probe.judge_id: probe for probe in newest}
    return [Ability(judge, found.get(judge.pk)) for judge in judges.order_by("name")]
