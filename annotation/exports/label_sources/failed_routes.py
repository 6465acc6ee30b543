"""Labels of routes that failed their label audit: an export may leave out those that people have not settled."""

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from corpus.models import Collection
from judges.domain.audits import route_of
from judges.engine import route_breakers
from judges.models import Campaign
from store.sql import fetch_rows, read_sql

UNSETTLED = read_sql(__file__, "read_unsettled")


@dataclass(frozen=True, slots=True)
class FailedRoute:
    """A route of a campaign that is surely wrong too often, and its unsettled pairs."""

    campaign: int  # Its number.
    route: str
    audited: int
    wrong: int
    pairs: int

    @property
    def description(self) -> str:
        """The route in words."""
        return route_of(self.route).description


def list_failed_routes(collection: Collection) -> list[FailedRoute]:
    """Return the routes of all campaigns that failed their audit. A statement for each audited campaign, and one."""
    audited = Campaign.judging.filter(collection=collection, audits__isnull=False).distinct()
    failed = {
        (number, route): found
        for pk, number in audited.order_by("pk").values_list("pk", "number")
        for route, found in route_breakers.answered_audits(pk, collection.relevant_from).items()
        if found.over
    }
    if not failed:
        return []
    pairs = Counter((campaign, route) for _pair, campaign, route in _read_unsettled(collection, list(failed)))
    return [
        FailedRoute(*key, audited=one.settled, wrong=one.settled - one.right, pairs=pairs[key])
        for key, one in failed.items()
    ]


def list_unsettled_pairs(collection: Collection) -> list[int]:
    """Return the pairs of failed routes whose label people have not settled."""
    failed = [(one.campaign, one.route) for one in list_failed_routes(collection)]
    return [pair for pair, *_route in _read_unsettled(collection, failed)] if failed else []


def describe_left_out(collections: list[Collection]) -> dict[str, Any]:
    """Say for a manifest what was left out, why, and of which routes. The words are the same in every language."""
    routes = [{"collection": one.name, **asdict(route)} for one in collections for route in list_failed_routes(one)]
    reason = "unsettled labels of routes that failed their label audit"
    return {"reason": reason, "pairs": sum(route["pairs"] for route in routes), "routes": routes}


def _read_unsettled(collection: Collection, failed: list[tuple[int, str]]) -> list[tuple[int, int, str]]:
    """Return (pair, number of the campaign, route) of labels that people have not settled."""
    campaigns, routes = map(list, zip(*failed, strict=True))
    rows = fetch_rows(UNSETTLED, collection=collection.pk, campaigns=campaigns, routes=routes)
    return [(pair, campaign, route) for pair, campaign, route in rows]
