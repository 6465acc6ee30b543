"""Reasons against exporting labels yet (their sentences: templates/label_quality/_readiness.html). Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from annotation.agreement.measures import TOO_FEW, Statistic
from annotation.quality.label_quality.records import Audits
from judges.domain.audits import OVERLAP

CHANCE = 0.2  # Alpha up to which agreement is slight (Landis and Koch, 1977).
COVERED = 0.999  # Share of audited labels that counts as all: the quotient of sizes is rounded.


@dataclass(frozen=True, slots=True)
class BlockingReason:
    """A reason not to export labels yet. `key`: its sentence; `count`: pairs, of `routes` routes; `value`: a share."""

    key: str
    count: int = 0
    routes: int = 0
    value: float = 0.0
    people: int | None = None  # Number of people who can judge, where they are too few.


def assess_readiness(
    status: Mapping[str, Any], audits: Audits | None, people: int, alpha: Statistic | None
) -> tuple[BlockingReason, ...]:
    """Return the reasons against exporting labels of this `status`; none where they can be exported.

    They can be exported once every pair is resolved, all label audits are resolved and represent all
    labels, no route is surely wrong too often, and the lower bound of the accuracy is above the limit.
    `audits`: None where nothing is labelled or measured yet; `people`: number of people who can judge;
    `alpha`: agreement of the judges over all pairs, of which fewer than 30 are no reason.
    """
    if not status["labelled"] and not status["settled"]:
        return (BlockingReason("no-labels"),)
    counts = {"unjudged": status["pending"] + status["running"], "failed": status["failed"], "open": status["open"]}
    status_reasons = [BlockingReason(key, n) for key, n in counts.items() if n > 0]
    reasons = assess_audits(status["labelled"], audits, people) if status["labelled"] else []
    if reasons and alpha is not None and alpha.n >= TOO_FEW and alpha.value is not None and alpha.value < CHANCE:
        reasons.append(BlockingReason("chance", value=alpha.value))
    return (*reasons, *status_reasons)


def assess_audits(labelled: int, audits: Audits | None, people: int) -> list[BlockingReason]:
    """Return the reasons of the label audits against exporting `labelled` automatic labels."""
    if audits is None:
        return [BlockingReason("not-computed", labelled)]
    if not audits.drawn:
        return [BlockingReason("not-audited", labelled)]
    reasons = []
    if audits.over:
        pairs = sum(route.population for route in audits.over)
        reasons.append(BlockingReason("routes", pairs, routes=len(audits.over)))
    if audits.open:
        # An audit takes OVERLAP people: with fewer none is ever resolved.
        reasons.append(BlockingReason("audits-open", audits.open, people=people if people < OVERLAP else None))
    if audits.conflicts:
        reasons.append(BlockingReason("audit-conflicts", audits.conflicts))
    # Only where no audit is open: open ones may cover the remaining labels.
    if not reasons and audits.covered < COVERED:
        reasons.append(BlockingReason("uncovered", value=audits.covered))
    low = audits.overall.low
    if low is not None and low < audits.least:
        reasons.append(BlockingReason("accuracy", value=low))
    return reasons
