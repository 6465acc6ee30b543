"""Accuracy of the automatic labels, from audits: by route with exact intervals, and over all routes (SPEC S3).

The truth of an audited pair is what people made of its audit item: their equal answers, or an adjudicator's. It is
compared with the label that stood in the audit's row before anybody saw the pair. Escalated pairs are not in it.
"""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.agreement.measures import Statistic
from annotation.agreement.proportions import Stratum, exact, overall, sequence
from annotation.trust.records import Audits, Route, load, missing
from corpus.models import Collection
from judges import stopping
from judges.audits import LIMIT, route_of, surely_over
from judges.models import Campaign

NO_AUDIT = gettext_noop("not measured: no drawn pair is settled yet")


def audits(collection: Collection, campaign: Campaign | None, counts: Mapping[str, float]) -> Audits | None:
    """The audit of one campaign, in one statement over the drawn pairs alone. `counts`: its counters (judges.tallies).

    None where nothing is labelled.
    """
    sizes = {key.removeprefix("route:"): int(n) for key, n in counts.items() if key.startswith("route:") and n > 0}
    if campaign is None or not sizes:
        return None
    found = stopping.answered(campaign.pk, collection.relevant_from)
    halted = stopping.stopped(found, counts)
    none = stopping.Answered()
    routes = tuple(_route(key, sizes[key], found.get(key, none), key in halted) for key in sorted(sizes, key=_order))
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
        conflicts=sum(one.conflicts for one in found.values()),
        population=_("%(labelled)s pairs that %(policy)s labelled in campaign %(campaign)s")
        % {"labelled": f"{labelled:,}", "policy": campaign.policy, "campaign": campaign.pk},
    )


def _order(key: str) -> tuple[int, int, int]:
    """Sure routes first."""
    route = route_of(key)
    return route.round, -route.margin, -route.label


def _route(key: str, population: int, answers: stopping.Answered, stopped: bool) -> Route:
    known, settled, right = route_of(key), answers.settled, answers.right
    bounds, looks = exact(right, settled), sequence(right, settled)
    value = right / settled if settled else None
    return Route(
        key=key,
        words=known.words,
        label=known.label,
        population=population,
        drawn=answers.drawn,
        settled=settled,
        right=right,
        accuracy=missing(NO_AUDIT) if value is None else Statistic(value, *bounds, settled, None),
        looks=missing(NO_AUDIT) if value is None else Statistic(value, *looks, settled, None),
        verdict=verdict(right, settled),
        stopped=stopped,
    )


def verdict(right: int, settled: int, limit: float = LIMIT) -> str:
    """enough, over or open, by the bound that allows for a look after every answer."""
    if surely_over(right, settled, limit):
        return "over"
    return "enough" if sequence(right, settled).low >= 1 - limit else "open"


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
