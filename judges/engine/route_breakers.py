"""Circuit breakers of routes: a route to a label that its audit shows wrong too often is stopped.

Its further pairs then go to people. Workers check at the start of each time slice, so a stop takes
effect within a minute. Earlier labels go back to people only if an admin confirms it, and an admin can
reset the breaker.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from judges.costs import counters
from judges.domain.audits import LIMIT, surely_over
from store.sql import fetch_rows, read_sql

STOPPED = "stopped:"  # Prefix of the counters of stopped routes, by key; above 0: the route has stopped.

RESUMED = "resumed:"  # Prefix of the counters of routes that an admin has reset; above 0: the route labels again.

ANSWERED = read_sql(__file__, "read_audit_answers")


@dataclass(frozen=True, slots=True)
class AnsweredAudits:
    """The audited pairs of a route with its `parts`, or of one part of it."""

    drawn: int = 0
    settled: int = 0  # Resolved by people.
    right: int = 0
    conflicts: int = 0  # They wait for an adjudicator.
    size: float = 0.0  # Labelled pairs from which they were drawn.
    parts: Mapping[int, "AnsweredAudits"] = field(default_factory=dict)

    @classmethod
    def together(cls, parts: Mapping[int, "AnsweredAudits"]) -> "AnsweredAudits":
        counts = ("drawn", "settled", "right", "conflicts", "size")
        return cls(**{name: sum(getattr(part, name) for part in parts.values()) for name in counts}, parts=parts)

    @property
    def over(self) -> bool:
        """True if the route's labels are certainly wrong too often, with its parts weighted by their size."""
        parts = [part for part in self.parts.values() if part.settled]
        right = sum(part.size * part.right / part.settled for part in parts)
        is_over_weighted = not parts or right < (1 - LIMIT) * sum(part.size for part in parts)
        # The bound on all answers together is valid as long as no single part exceeds the limit.
        return is_over_weighted and surely_over(self.right, self.settled)


def answered_audits(campaign: int, relevant: int) -> dict[str, AnsweredAudits]:
    """Return the answers of people on audited pairs, by route. One statement."""
    parts: dict[str, dict[int, AnsweredAudits]] = defaultdict(dict)
    for stratum, part, *counts in fetch_rows(ANSWERED, campaign=campaign, relevant=relevant):
        parts[stratum][part] = AnsweredAudits(*counts)
    return {stratum: AnsweredAudits.together(route_parts) for stratum, route_parts in parts.items()}


def tripped_routes(audits: Mapping[str, AnsweredAudits], counts: Mapping[str, float]) -> frozenset[str]:
    """Return the keys of routes that are stopped, or will be at the next check, and that no admin has reset.

    `counts`: the campaign's counters.
    """
    tripped = {key.removeprefix(STOPPED) for key, n in counts.items() if key.startswith(STOPPED) and n > 0}
    over = {key for key, route in audits.items() if route.over}
    return frozenset(key for key in tripped | over if counts.get(f"{RESUMED}{key}", 0) <= 0)


def trip_routes(campaign: int, relevant: int, counts: Mapping[str, float]) -> frozenset[str]:
    """Stop the routes that are wrong too often, and return the keys of all stopped routes."""
    if counts.get("audited", 0) <= 0:
        return frozenset()  # no audit is completed
    # The stop is stored: only an admin can reset it, not a later audit that is right.
    tripped = tripped_routes(answered_audits(campaign, relevant), counts)
    for key in sorted(tripped):
        if counts.get(f"{STOPPED}{key}", 0) <= 0:
            counters.add(campaign, f"{STOPPED}{key}", 1)
    return tripped


def reset_route(campaign: int, route: str, *, on: bool = True) -> None:
    """Reset a route's breaker so that the route labels again; with `on` False undo that."""
    is_reset = counters.read(campaign).get(f"{RESUMED}{route}", 0) > 0
    if is_reset is not on:
        counters.add(campaign, f"{RESUMED}{route}", 1 if on else -1)
