"""Accuracy of the automatic labels, from audits: by route with exact intervals, and over all routes (SPEC S3).

The truth of an audited pair is what people made of its audit item: their equal answers, or an adjudicator's. It is
compared with the label that stood in the audit's row before anybody saw the pair. Escalated pairs are not in it.
"""

from collections.abc import Callable, Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.agreement.measures import Statistic
from annotation.agreement.proportions import Bounds, Stratum, exact, overall, sequence
from annotation.trust.records import Audits, Route, load, missing
from corpus.models import Collection
from judges import stopping
from judges.audits import HALF_WIDTH, LEAST, LIMIT, USUAL, allocate, route_of, surely_over
from judges.models import Campaign

NO_AUDIT = gettext_noop("not measured: no drawn pair is settled yet")


def audits(
    collection: Collection,
    campaign: Campaign | None,
    counts: Mapping[str, float],
    left: Mapping[str, int] | None = None,
) -> Audits | None:
    """The audit of one campaign, in one statement over the drawn pairs alone. `counts`: its counters (judges.tallies).

    `left`: pairs of each route that can be drawn (judges.sampling.left); without it all that are not drawn. None where
    nothing is labelled.
    """
    sizes = {key.removeprefix("route:"): int(n) for key, n in counts.items() if key.startswith("route:") and n > 0}
    if campaign is None or not sizes:
        return None
    found = stopping.answered(campaign.pk, collection.relevant_from)
    halted = stopping.stopped(found, counts)
    none = stopping.Answered()
    drawn = {key: found.get(key, none).drawn for key in sizes}
    most = {key: size if left is None else min(size, drawn[key] + left.get(key, 0)) for key, size in sizes.items()}
    routes = tuple(
        _route(key, sizes[key], found.get(key, none), key in halted, most[key]) for key in sorted(sizes, key=_order)
    )
    labelled = sum(sizes.values())
    half, enough, reached = _overall_forecast(routes)
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
        half=half,
        enough=enough,
        reached=reached,
    )


def _order(key: str) -> tuple[int, int, int]:
    """Sure routes first."""
    route = route_of(key)
    return route.round, -route.margin, -route.label


def _route(key: str, population: int, answers: stopping.Answered, stopped: bool, most: int) -> Route:
    known, settled, right = route_of(key), answers.settled, answers.right
    bounds, looks = exact(right, settled), sequence(right, settled)
    value = right / settled if settled else None
    enough, reached = _enough(lambda n: exact(_expected(right, settled) * n, n), answers.drawn, most, population)
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
        half=_half(exact(_expected(right, settled) * answers.drawn, answers.drawn)) if answers.drawn else None,
        enough=enough,
        most=most,
        reached=reached,
    )


def _expected(right: int, settled: int) -> float:
    """The share that is right, as far as is known: what people found, beside 19 of 20 (judges.audits.USUAL)."""
    return (right + USUAL[0]) / (settled + USUAL[1])


def _half(bounds: Bounds) -> float:
    return (bounds.high - bounds.low) / 2


def _enough(bounds: Callable[[int], Bounds], drawn: int, most: int, population: int) -> tuple[int, bool]:
    """The smallest sample, from what is drawn on, whose interval is within 5 points; `most` where none is.

    And whether it is: the whole population leaves no doubt.
    """
    low, high = min(drawn, most), most
    if low and _half(bounds(low)) <= HALF_WIDTH:
        return low, True
    high = min(high, max(2 * low, LEAST))
    while high < most and _half(bounds(high)) > HALF_WIDTH:
        low, high = high, min(2 * high, most)
    while low < high:
        middle = (low + high) // 2
        if middle and _half(bounds(middle)) <= HALF_WIDTH:
            high = middle
        else:
            low = middle + 1
    return high, high >= population or (high > 0 and _half(bounds(high)) <= HALF_WIDTH)


def _overall_forecast(routes: tuple[Route, ...]) -> tuple[float | None, int, bool]:
    """Half the width of the interval over all routes once what is drawn is settled, and the sample that is enough."""
    most = {route.key: route.most for route in routes}
    sizes = {route.key: route.population for route in routes}
    drawn = {route.key: route.drawn for route in routes}
    share = {route.key: _expected(route.right, route.settled) for route in routes}

    def bounds(n: int) -> Bounds:
        taken = allocate(most, n, drawn)
        found = overall([Stratum(sizes[key], taken[key], share[key] * taken[key]) for key in sizes])
        return found[1] if found else Bounds(0.0, 1.0)

    total = sum(drawn.values())
    return _half(bounds(total)) if total else None, *_enough(bounds, total, sum(most.values()), sum(sizes.values()))


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
