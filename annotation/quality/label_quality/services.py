"""Actions on label audits: draw more, send a failed route to people, stop or resume a route."""

from typing import Any

from django.http import Http404
from django.utils.translation import gettext as _

from actions.services import Actor, action
from annotation.quality.label_quality.options import DrawOptions
from corpus.collections.task_order import forget_watermarks
from judges.costs import counters
from judges.domain.audits import Route, route_of
from judges.engine import audit_sampling, route_breakers
from judges.models import Campaign
from store.sql import fetch_row, fetch_rows, read_sql

UNMET_PAIRS = """
SELECT w.pair_id FROM judges_work w
WHERE w.campaign_id = %(campaign)s AND w.state = 'labelled' AND w.label = %(label)s
  AND coalesce(w.agreed_in_round, 0) = %(round)s
  AND NOT EXISTS (SELECT FROM corpus_item i WHERE i.pair_id = w.pair_id)
  AND coalesce((SELECT sum(CASE WHEN t.verdict = w.label THEN 1 ELSE -1 END) FROM counted_attempt t
       WHERE t.campaign_id = w.campaign_id AND t.pair_id = w.pair_id AND t.role = 'vote'
         AND t.verdict IS NOT NULL), 0) = %(margin)s
"""
OPEN_ROUTE = read_sql(__file__, "open_route")


def find_route(key: str) -> Route:
    """Return the route of a key. Raises Http404, as for an unknown object of an address."""
    try:
        return route_of(key)
    except ValueError:
        raise Http404(_("Route not found.")) from None


@action("audit.drawn", noted=lambda _options, drawn: drawn)
def draw_audits(actor: Actor, campaign: Campaign, options: DrawOptions) -> dict[str, Any]:
    """Draw more pairs of a campaign that has ended for people to check."""
    route = find_route(options.route).key if options.route else ""
    pairs = audit_sampling.draw_more(campaign=campaign, up_to=options.up_to, route=route)
    return {"campaign": campaign.number, "route": route, "pairs": pairs}


def unasked_pairs(campaign: Campaign, route: Route) -> list[int]:
    """Return the pairs of the route that were never a task for people."""
    rows = fetch_rows(UNMET_PAIRS, campaign=campaign.pk, label=route.label, round=route.round, margin=route.margin)
    return [pair for (pair,) in rows]


@action("audit.to-people", noted=lambda _route, sent: sent)
def send_route(actor: Actor, campaign: Campaign, route: Route) -> dict[str, Any]:
    """Open a blind task for each pair of a route that people have not met, outside the random sample."""
    (count,) = fetch_row(OPEN_ROUTE, campaign=campaign.pk, pairs=unasked_pairs(campaign, route))
    if count:
        counters.add(campaign.pk, "escalated:audit", count)
        forget_watermarks(campaign.collection)
    return {"campaign": campaign.number, "route": route.key, "pairs": int(count)}


@action("audit.go-on", noted=lambda _route, changed: changed)
def switch_route(actor: Actor, campaign: Campaign, route: Route, *, on: bool) -> dict[str, Any]:
    """Resume automatic labelling by a route, or (`on` false) stop it."""
    route_breakers.reset_route(campaign.pk, route.key, on=on)
    return {"campaign": campaign.number, "route": route.key, "on": on}
