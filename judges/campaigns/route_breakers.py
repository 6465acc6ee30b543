"""A route to a label that its audit finds wrong too often stops: its further pairs go to people.

Workers look when they begin to drain, so a stop holds within a minute. Labels that stand already go back to people only
when an admin confirms it, and an admin can let the route go on.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from django.db import connection

from judges.campaigns import counters
from judges.domain.audits import LIMIT, surely_over

STOPPED = "stopped:"  # Counter of a route that stopped, followed by its key; above 0: it did.

RESUMED = "resumed:"  # Counter of a route that an admin lets go on, followed by its key; above 0: it does.

# The part of campaign `g` in which it labelled the pair of work `w`: 0, and one more after each end of it.
PART = "coalesce(width_bucket(w.ended_at, g.sampled_at), 0)"

ANSWERED = f"""
WITH drawn AS (
    SELECT a.id, a.stratum, a.label, a.probability, {PART} AS part, i.state,
        (SELECT j.grade FROM current_judgment j WHERE j.item_id = i.id AND i.state = 'settled'
         GROUP BY j.grade
         ORDER BY bool_or(j.step = 'adjudication') DESC, count(*) DESC LIMIT 1) >= %(relevant)s AS relevant
    FROM judges_audit a JOIN corpus_item i ON i.id = a.item_id JOIN judges_campaign g ON g.id = a.campaign_id
    LEFT JOIN judges_work w ON w.campaign_id = a.campaign_id AND w.pair_id = a.pair_id
    WHERE a.campaign_id = %(campaign)s
)
SELECT stratum, part, count(*), count(relevant), count(*) FILTER (WHERE relevant = (label = 1)),
       count(*) FILTER (WHERE state = 'conflict'), sum(1 / probability)
FROM drawn GROUP BY stratum, part ORDER BY stratum, part
"""


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
        """Return the route that sums these parts."""
        counts = ("drawn", "settled", "right", "conflicts", "size")
        return cls(**{name: sum(getattr(one, name) for one in parts.values()) for name in counts}, parts=parts)

    @property
    def over(self) -> bool:
        """True if the route's labels are surely wrong too often. Its parts weigh by their numbers of pairs."""
        # Where no part is beyond the limit, the bound holds for the answers of all parts together.
        settled = [one for one in self.parts.values() if one.settled]
        right = sum(one.size * one.right / one.settled for one in settled)
        on_the_whole = not settled or right < (1 - LIMIT) * sum(one.size for one in settled)
        return on_the_whole and surely_over(self.right, self.settled)


def answered_audits(campaign: int, relevant: int) -> dict[str, AnsweredAudits]:
    """Return people's answers on drawn pairs, by route; `relevant`: lowest relevant grade. One statement."""
    with connection.cursor() as cursor:
        cursor.execute(ANSWERED, {"campaign": campaign, "relevant": relevant})
        parts: dict[str, dict[int, AnsweredAudits]] = defaultdict(dict)
        for stratum, part, drawn, settled, right, conflicts, size in cursor.fetchall():
            parts[stratum][part] = AnsweredAudits(drawn, settled, right, conflicts, size)
    return {stratum: AnsweredAudits.together(found) for stratum, found in parts.items()}


def tripped_routes(found: Mapping[str, AnsweredAudits], counts: Mapping[str, float]) -> frozenset[str]:
    """Keys of the routes that stopped, or would at the next look, and that no admin let go on. `counts`: counters."""
    known = {key.removeprefix(STOPPED) for key, n in counts.items() if key.startswith(STOPPED) and n > 0}
    over = {key for key, one in found.items() if one.over}
    return frozenset(key for key in known | over if counts.get(f"{RESUMED}{key}", 0) <= 0)


def trip_routes(campaign: int, relevant: int, counts: Mapping[str, float]) -> frozenset[str]:
    """Stop the routes that are wrong too often, and return the keys of all that are stopped."""
    if counts.get("audited", 0) <= 0:
        return frozenset()  # no audit is settled: nothing need be read
    # It is kept: a route that was stopped goes on when an admin says so, not when a later audit is right.
    found = tripped_routes(answered_audits(campaign, relevant), counts)
    for key in sorted(found):
        if counts.get(f"{STOPPED}{key}", 0) <= 0:
            counters.add(campaign, f"{STOPPED}{key}", 1)
    return found


def reset_route(campaign: int, route: str, *, on: bool = True) -> None:
    """Reset a route's breaker so that it labels again, or with `on` False trip it."""
    going = counters.read(campaign).get(f"{RESUMED}{route}", 0) > 0
    if going is not on:
        counters.add(campaign, f"{RESUMED}{route}", 1 if on else -1)
