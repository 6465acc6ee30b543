"""Labels of routes that failed their label audit: an export may leave out those that people have not resolved."""

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from corpus.models import Collection
from judges.domain.audits import route_of
from judges.engine import route_breakers
from judges.models import Campaign
from store.sql import fetch_rows, read_sql

READ_UNRESOLVED = read_sql(__file__, "read_unsettled")


@dataclass(frozen=True, slots=True)
class FailedRoute:
    """A route of a campaign that is surely wrong too often. `pairs`: number of pairs that people have not resolved."""

    campaign: int  # Number of the campaign.
    route: str
    audited: int
    wrong: int
    pairs: int
    description: str  # The route in words.


def list_failed_routes(collection: Collection) -> list[FailedRoute]:
    """Return the routes of all campaigns that failed their audit. One SQL statement for each campaign, and two."""
    audited = Campaign.judging.filter(collection=collection, audits__isnull=False).distinct()
    campaigns = {campaign.number: campaign for campaign in audited.order_by("pk")}
    failed = {
        (number, route): answers
        for number, campaign in campaigns.items()
        for route, answers in route_breakers.answered_audits(campaign.pk, collection.relevant_from).items()
        if answers.over
    }
    if not failed:
        return []
    pairs = Counter((campaign, route) for _pair, campaign, route in _read_unsettled(collection, list(failed)))
    return [
        FailedRoute(
            *(number, route, answers.settled, answers.settled - answers.right, pairs[number, route]),
            description=campaigns[number].describe_route(route_of(route)),
        )
        for (number, route), answers in failed.items()
    ]


def list_unsettled_pairs(collection: Collection) -> list[int]:
    """Return the pairs of failed routes whose label people have not resolved."""
    failed = [(failed_route.campaign, failed_route.route) for failed_route in list_failed_routes(collection)]
    return [pair for pair, *_route in _read_unsettled(collection, failed)] if failed else []


def describe_left_out(collections: list[Collection]) -> dict[str, Any]:
    """Return the description of left-out labels for a manifest, which is the same in every language."""
    routes = [
        {"collection": collection.name, **{key: value for key, value in asdict(route).items() if key != "description"}}
        for collection in collections
        for route in list_failed_routes(collection)
    ]
    reason = "unsettled labels of routes that failed their label audit"
    return {"reason": reason, "pairs": sum(route["pairs"] for route in routes), "routes": routes}


def _read_unsettled(collection: Collection, failed: list[tuple[int, str]]) -> list[tuple[int, int, str]]:
    """Return (pair, number of the campaign, route) of labels that people have not resolved."""
    campaigns, routes = map(list, zip(*failed, strict=True))
    rows = fetch_rows(READ_UNRESOLVED, collection=collection.pk, campaigns=campaigns, routes=routes)
    return [(pair, campaign, route) for pair, campaign, route in rows]
