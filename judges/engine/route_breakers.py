"""A route to a label that its audit finds wrong too often stops: its further pairs go to people.

Workers look when they begin to drain, so a stop holds within a minute. Labels that stand already go
back to people only when an admin confirms it, and an admin can let the route go on.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from judges.costs import counters
from judges.domain.audits import LIMIT, surely_over
from store.sql import fetch_rows, read_sql

STOPPED = "stopped:"  # Counter of a route that stopped, followed by its key; above 0: it did.

RESUMED = "resumed:"  # Counter of a route that an admin lets go on, followed by its key; above 0: it does.

ANSWERED = read_sql(__file__, "read_audit_answers")


@dataclass(frozen=True, slots=True)
class AnsweredAudits:
    """The audited pairs of a route with its `parts`, or of one part of it."""

    drawn: int = 0
    settled: int = 0  # By people.
    right: int = 0
    conflicts: int = 0  # They wait for an adjudicator.
    size: float = 0.0  # Labelled pairs that the drawn ones stand for.
    parts: Mapping[int, "AnsweredAudits"] = field(default_factory=dict)

    @classmethod
    def together(cls, parts: Mapping[int, "AnsweredAudits"]) -> "AnsweredAudits":
        counts = ("drawn", "settled", "right", "conflicts", "size")
        return cls(**{name: sum(getattr(part, name) for part in parts.values()) for name in counts}, parts=parts)

    @property
    def over(self) -> bool:
        """True if a route's labels are surely wrong too often, parts weighted."""
        # Where no part is beyond the limit, the bound holds for the answers of all parts together.
        settled = [part for part in self.parts.values() if part.settled]
        right = sum(part.size * part.right / part.settled for part in settled)
        on_the_whole = not settled or right < (1 - LIMIT) * sum(part.size for part in settled)
        return on_the_whole and surely_over(self.right, self.settled)


def answered_audits(campaign: int, relevant: int) -> dict[str, AnsweredAudits]:
    """Return people's answers on drawn pairs, by route. One statement."""
    parts: dict[str, dict[int, AnsweredAudits]] = defaultdict(dict)
    for stratum, part, *counts in fetch_rows(ANSWERED, campaign=campaign, relevant=relevant):
        parts[stratum][part] = AnsweredAudits(*counts)
    return {stratum: AnsweredAudits.together(route_parts) for stratum, route_parts in parts.items()}


def tripped_routes(audits: Mapping[str, AnsweredAudits], counts: Mapping[str, float]) -> frozenset[str]:
    """Keys of the routes that stopped, or would at the next look, and that no admin let go on. `counts`: counters."""
    tripped = {key.removeprefix(STOPPED) for key, n in counts.items() if key.startswith(STOPPED) and n > 0}
    over = {key for key, route in audits.items() if route.over}
    return frozenset(key for key in tripped | over if counts.get(f"{RESUMED}{key}", 0) <= 0)


def trip_routes(campaign: int, relevant: int, counts: Mapping[str, float]) -> frozenset[str]:
    """Stop the routes that are wrong too often, and return the keys of all that are stopped."""
    if counts.get("audited", 0) <= 0:
        return frozenset()  # no audit is settled: nothing need be read
    # It is kept: a route that was stopped goes on when an admin says so, not when a later audit is right.
    tripped = tripped_routes(answered_audits(campaign, relevant), counts)
    for key in sorted(tripped):
        if counts.get(f"{STOPPED}{key}", 0) <= 0:
            counters.add(campaign, f"{STOPPED}{key}", 1)
    return tripped


def reset_route(campaign: int, route: str, *, on: bool = True) -> None:
    """Reset a route's breaker so that it labels again, or with `on` False trip it."""
    going = counters.read(campaign).get(f"{RESUMED}{route}", 0) > 0
    if going is not on:
        counters.add(campaign, f"{RESUMED}{route}", 1 if on else -1)
