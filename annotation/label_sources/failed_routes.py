"""Labels of routes that failed their label audit: an export may leave out those that people have not settled."""

from dataclasses import asdict, dataclass
from typing import Any

from django.db import connection

from annotation.label_sources.statements import PAIRS
from corpus.models import Collection
from judges.campaigns import route_breakers
from judges.domain.audits import route_of
from judges.models import Campaign

# A pair that a later campaign labelled has that one's label.
UNSETTLED = f"""
    SELECT l.pair_id, failed.campaign, w.stratum AS route
    FROM unnest(%(campaigns)s::int[], %(routes)s::text[]) AS failed(campaign, route)
    JOIN judges_campaign f ON f.collection_id = %(collection)s AND f.number = failed.campaign
    JOIN judges_work w ON w.campaign_id = f.id AND w.stratum = failed.route AND w.state = 'labelled'
    JOIN corpus_label l ON l.pair_id = w.pair_id AND l.aspect_id IS NULL AND l.origin NOT IN ('people', 'adjudicator')
    {PAIRS.format(of="l")}
    WHERE NOT EXISTS (
        SELECT FROM judges_work n JOIN judges_campaign c ON c.id = n.campaign_id AND c.kind = 'judging'
        WHERE n.pair_id = w.pair_id AND n.campaign_id > w.campaign_id AND n.state = 'labelled')
"""
COUNT = f"SELECT campaign, route, count(*) FROM ({UNSETTLED}) found GROUP BY campaign, route"


@dataclass(frozen=True, slots=True)
class FailedRoute:
    """A route of a campaign that is surely wrong too often, and its pairs whose label stands unsettled."""

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
    with connection.cursor() as cursor:
        cursor.execute(COUNT, _route_parameters(collection, list(failed)))
        pairs = {(campaign, route): n for campaign, route, n in cursor.fetchall()}
    return [
        FailedRoute(*key, audited=one.settled, wrong=one.settled - one.right, pairs=pairs.get(key, 0))
        for key, one in failed.items()
    ]


def list_unsettled_pairs(collection: Collection) -> list[int]:
    """Return the pairs of failed routes whose label people have not settled."""
    failed = [(one.campaign, one.route) for one in list_failed_routes(collection)]
    if not failed:
        return []
    with connection.cursor() as cursor:
        cursor.execute(UNSETTLED, _route_parameters(collection, failed))
        return [pair for pair, *_route in cursor.fetchall()]


def describe_left_out(collections: list[Collection]) -> dict[str, Any]:
    """Say for a manifest what was left out, why, and of which routes. The words are the same in every language."""
    routes = [{"collection": one.name, **asdict(route)} for one in collections for route in list_failed_routes(one)]
    reason = "unsettled labels of routes that failed their label audit"
    return {"reason": reason, "pairs": sum(route["pairs"] for route in routes), "routes": routes}


def _route_parameters(collection: Collection, failed: list[tuple[int, str]]) -> dict[str, Any]:
    campaigns, routes = zip(*failed, strict=True)
    return {"collection": collection.pk, "campaigns": list(campaigns), "routes": list(routes)}
