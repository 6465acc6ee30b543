"""A route that failed its audit goes back to people, once an admin has confirmed it."""

from django.db import transaction

from corpus.collections.task_order import forget_watermarks
from judges.campaigns import counters
from judges.domain.audits import Route
from judges.models import Campaign
from store.sql import fetch_row, fetch_rows, read_sql

LEFT = """
SELECT w.pair_id FROM judges_work w
WHERE w.campaign_id = %(campaign)s AND w.state = 'labelled' AND w.label = %(label)s
  AND coalesce(w.agreed_in_round, 0) = %(round)s
  AND NOT EXISTS (SELECT FROM corpus_item i WHERE i.pair_id = w.pair_id)
  AND coalesce((SELECT sum(CASE WHEN t.verdict = w.label THEN 1 ELSE -1 END) FROM counted_attempt t
       WHERE t.campaign_id = w.campaign_id AND t.pair_id = w.pair_id AND t.role = 'vote'
         AND t.verdict IS NOT NULL), 0) = %(margin)s
"""

OPEN = read_sql(__file__, "open_route")


def count_unasked(campaign: Campaign, route: Route) -> int:
    """Count the pairs of the route that no person was ever asked about."""
    return len(_unasked(campaign, route))


@transaction.atomic
def to_people(campaign: Campaign, route: Route) -> int:
    """Open a blind item for each such pair, and return how many. They stay labelled, and count as audits.

    They do not enter the estimate: it rests on the pairs that were drawn.
    """
    (count,) = fetch_row(OPEN, campaign=campaign.pk, pairs=_unasked(campaign, route))
    if count:
        counters.add(campaign.pk, "escalated:audit", count)
        forget_watermarks(campaign.collection)
    return int(count)


def _unasked(campaign: Campaign, route: Route) -> list[int]:
    rows = fetch_rows(LEFT, campaign=campaign.pk, label=route.label, round=route.round, margin=route.margin)
    return [pair for (pair,) in rows]
