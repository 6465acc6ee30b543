"""Reasons against exporting a collection's labels yet. Pure.

templates/label_quality/_readiness.html has the words, and what to do next.
"""

from dataclasses import dataclass

from annotation.label_quality.records import Audits
from judges.domain.audits import OVERLAP

CHANCE = 0.2  # Alpha up to which agreement is slight (Landis and Koch, 1977).
COVERED = 0.999  # Share of the labels that audits speak for from which nothing is missing: a quotient of sizes.


@dataclass(frozen=True, slots=True)
class LabelFacts:
    """Facts about the labels of a collection."""

    labelled: int  # Pairs that judges labelled.
    settled: int  # Pairs that people settled.
    unjudged: int  # Pairs that nobody has judged.
    failed: int
    open: int  # Escalated pairs that wait for people.
    people: int  # Who could judge: active, not paused.
    audits: Audits | None = None  # None: nothing is labelled, or nothing is computed yet.
    alpha: float | None = None  # Agreement of the judges over all pairs, beyond chance.


@dataclass(frozen=True, slots=True)
class BlockingReason:
    """A reason not to export labels yet. `key`: its sentence; `count`: pairs, of `routes` routes; `value`: a share."""

    key: str
    count: int = 0
    routes: int = 0
    value: float = 0.0
    people: int | None = None  # Where too few can judge: how many there are.


def assess_readiness(facts: LabelFacts) -> tuple[BlockingReason, ...]:
    """Return the reasons against exporting the labels, none where they can go out.

    They can where every pair is resolved, all label audits are settled and speak for all labels, no route is surely
    wrong too often, and the lower bound of the accuracy is above the limit.
    """
    if not facts.labelled and not facts.settled:
        return (BlockingReason("no-labels"),)
    counts = {"unjudged": facts.unjudged, "failed": facts.failed, "open": facts.open}
    found = [BlockingReason(key, n) for key, n in counts.items() if n > 0]
    accuracy = _accuracy_reasons(facts) if facts.labelled else []
    if accuracy and facts.alpha is not None and facts.alpha < CHANCE:
        accuracy.append(BlockingReason("chance", value=facts.alpha))
    return (*accuracy, *found)


def _accuracy_reasons(facts: LabelFacts) -> list[BlockingReason]:
    audits = facts.audits
    if audits is None:
        return [BlockingReason("not-computed", facts.labelled)]
    if not audits.drawn:
        return [BlockingReason("not-audited", facts.labelled)]
    found = []
    if audits.over:
        pairs = sum(route.population for route in audits.over)
        found.append(BlockingReason("routes", pairs, routes=len(audits.over)))
    if audits.open:
        # Each audit takes OVERLAP people, so that with fewer none is ever settled.
        few = facts.people if facts.people < OVERLAP else None
        found.append(BlockingReason("audits-open", audits.open, people=few))
    if audits.conflicts:
        found.append(BlockingReason("audit-conflicts", audits.conflicts))
    # Only when nothing is open: settled audits may speak for the rest.
    if not found and audits.covered < COVERED:
        found.append(BlockingReason("uncovered", value=audits.covered))
    low = audits.overall.low
    if low is not None and low < audits.least:
        found.append(BlockingReason("accuracy", value=low))
    return found
