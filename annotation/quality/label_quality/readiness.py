"""Reasons against exporting labels yet (words: templates/label_quality/_readiness.html). Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from annotation.quality.label_quality.records import Audits
from judges.domain.audits import OVERLAP

CHANCE = 0.2  # Alpha up to which agreement is slight (Landis and Koch, 1977).
COVERED = 0.999  # Share of the labels that audits speak for from which nothing is missing: a quotient of sizes.


@dataclass(frozen=True, slots=True)
class BlockingReason:
    """A reason not to export labels yet. `key`: its sentence; `count`: pairs, of `routes` routes; `value`: a share."""

    key: str
    count: int = 0
    routes: int = 0
    value: float = 0.0
    people: int | None = None  # Where too few can judge: how many there are.


def assess_readiness(
    status: Mapping[str, Any], audits: Audits | None, people: int, alpha: float | None
) -> tuple[BlockingReason, ...]:
    """Return the reasons against exporting labels of this `status`, none where they can go out.

    They can where every pair is resolved, all label audits are settled and speak for all labels, no
    route is surely wrong too often, and the lower bound of the accuracy is above the limit.
    `audits` None: nothing is labelled, or computed yet; `people`: who could judge; `alpha`:
    agreement of the judges over all pairs.
    """
    if not status["labelled"] and not status["settled"]:
        return (BlockingReason("no-labels"),)
    counts = {"unjudged": status["pending"] + status["running"], "failed": status["failed"], "open": status["open"]}
    found = [BlockingReason(key, n) for key, n in counts.items() if n > 0]
    accuracy = _accuracy_reasons(status["labelled"], audits, people) if status["labelled"] else []
    if accuracy and alpha is not None and alpha < CHANCE:
        accuracy.append(BlockingReason("chance", value=alpha))
    return (*accuracy, *found)


def _accuracy_reasons(labelled: int, audits: Audits | None, people: int) -> list[BlockingReason]:
    if audits is None:
        return [BlockingReason("not-computed", labelled)]
    if not audits.drawn:
        return [BlockingReason("not-audited", labelled)]
    found = []
    if audits.over:
        pairs = sum(route.population for route in audits.over)
        found.append(BlockingReason("routes", pairs, routes=len(audits.over)))
    if audits.open:
        # Each audit takes OVERLAP people, so that with fewer none is ever settled.
        found.append(BlockingReason("audits-open", audits.open, people=people if people < OVERLAP else None))
    if audits.conflicts:
        found.append(BlockingReason("audit-conflicts", audits.conflicts))
    # Only when nothing is open: settled audits may speak for the rest.
    if not found and audits.covered < COVERED:
        found.append(BlockingReason("uncovered", value=audits.covered))
    low = audits.overall.low
    if low is not None and low < audits.least:
        found.append(BlockingReason("accuracy", value=low))
    return found
