"""Accuracy of the automatic labels, from audits: by route with exact intervals, and over all routes (SPEC S3).

The truth of an audited pair is what people made of its audit item: their equal answers, or an adjudicator's. It is
compared with the label that stood in the audit's row before anybody saw the pair. Escalated pairs are not in it.
"""

from collections.abc import Mapping
from typing import Any

from django.db import connection

from annotation.agreement.measures import Statistic
from annotation.agreement.proportions import Stratum, exact, overall, sequence
from annotation.trust.records import Audits, Route, load, missing
from corpus.models import Collection
from judges.audits import route_of
from judges.models import Campaign

LIMIT = 0.1
"""Share of wrong labels that a route may have before it is alarmed."""

NO_AUDIT = "not measured: no drawn pair is settled yet"
FOUND = """
WITH drawn AS (
    SELECT a.id, a.stratum, a.label, a.probability, i.state,
        (SELECT j.grade FROM corpus_judgment j
         WHERE j.item_id = i.id AND j.grade IS NOT NULL AND i.state = 'settled'
           AND NOT EXISTS (SELECT FROM corpus_judgment later WHERE later.supersedes_id = j.id)
         GROUP BY j.grade
         ORDER BY bool_or(j.step = 'adjudication') DESC, count(*) DESC LIMIT 1) >= %(relevant)s AS relevant
    FROM judges_audit a JOIN corpus_item i ON i.id = a.item_id WHERE a.campaign_id = %(campaign)s
)
SELECT stratum, count(*), count(relevant), count(*) FILTER (WHERE relevant = (label = 1)),
       count(*) FILTER (WHERE state = 'conflict')
FROM drawn GROUP BY stratum ORDER BY stratum
"""


def audits(collection: Collection, campaign: Campaign | None, counts: Mapping[str, float]) -> Audits | None:
    """The audit of one campaign, in one statement over the drawn pairs alone. `counts`: its counters (judges.tallies).

    None where nothing is labelled.
    """
    sizes = {key.removeprefix("route:"): int(n) for key, n in counts.items() if key.startswith("route:") and n > 0}
    if campaign is None or not sizes:
        return None
    with connection.cursor() as cursor:
        cursor.execute(FOUND, {"campaign": campaign.pk, "relevant": collection.relevant_from})
        found = {stratum: tuple(map(int, rest)) for stratum, *rest in cursor.fetchall()}
    none = (0, 0, 0, 0)
    routes = tuple(_route(key, sizes[key], *found.get(key, none)[:3]) for key in sorted(sizes, key=_order))
    labelled = sum(sizes.values())
    return Audits(
        campaign=campaign.pk,
        policy=campaign.policy,
        overall=_overall(routes),
        covered=sum(route.population for route in routes if route.settled) / labelled,
        routes=routes,
        limit=LIMIT,
        drawn=sum(route.drawn for route in routes),
        settled=sum(route.settled for route in routes),
        conflicts=sum(rest[3] for rest in found.values()),
        population=f"{labelled:,} pairs that {campaign.policy} labelled in campaign {campaign.pk}",
    )


def _order(key: str) -> tuple[int, int, int]:
    """Sure routes first."""
    route = route_of(key)
    return route.round, -route.margin, -route.label


def _route(key: str, population: int, drawn: int, settled: int, right: int) -> Route:
    known = route_of(key)
    bounds, looks = exact(right, settled), sequence(right, settled)
    value = right / settled if settled else None
    return Route(
        key=key,
        words=known.words,
        label=known.label,
        population=population,
        drawn=drawn,
        settled=settled,
        right=right,
        accuracy=missing(NO_AUDIT) if value is None else Statistic(value, *bounds, settled, None),
        looks=missing(NO_AUDIT) if value is None else Statistic(value, *looks, settled, None),
        verdict=verdict(right, settled),
    )


def verdict(right: int, settled: int, limit: float = LIMIT) -> str:
    """enough, over or open, by the bound that allows for a look after every answer."""
    low, high = sequence(right, settled)
    if high < 1 - limit:
        return "over"
    return "enough" if low >= 1 - limit else "open"


def _overall(routes: tuple[Route, ...]) -> Statistic:
    found = overall([Stratum(route.population, route.settled, route.right) for route in routes])
    if found is None:
        return missing(NO_AUDIT)
    value, bounds = found
    return Statistic(value, bounds.low, bounds.high, sum(route.settled for route in routes), None)


def load_audits(found: Mapping[str, Any]) -> Audits:
    """From the JSON of a stored row."""
    rest = {name: value for name, value in found.items() if name not in ("overall", "routes")}
    routes = tuple(load(Route, route) for route in found["routes"])
    return Audits(overall=Statistic(**found["overall"]), routes=routes, **rest)
