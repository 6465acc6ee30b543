"""A route that failed its audit goes back to people, once an admin has confirmed it."""

from django.db import connection, transaction

from corpus.collections.task_order import PRIORITY_SQL, forget_watermarks, open_items
from judges.campaigns import counters
from judges.domain.audits import OVERLAP, Route
from judges.models import Campaign

LEFT = """
SELECT w.pair_id FROM judges_work w
WHERE w.campaign_id = %(campaign)s AND w.state = 'labelled' AND w.label = %(label)s
  AND coalesce(w.agreed_in_round, 0) = %(round)s
  AND NOT EXISTS (SELECT FROM corpus_item i WHERE i.pair_id = w.pair_id)
  AND coalesce((SELECT sum(CASE WHEN t.verdict = w.label THEN 1 ELSE -1 END) FROM counted_attempt t
       WHERE t.campaign_id = w.campaign_id AND t.pair_id = w.pair_id AND t.role = 'vote'
         AND t.verdict IS NOT NULL), 0) = %(margin)s
"""

WANTED = f"""
SELECT p.collection_id AS collection, p.id AS pair, %(campaign)s::bigint AS campaign, 'audit' AS reason,
       {PRIORITY_SQL.format(order="c.order", seed="c.seed")} AS priority, {OVERLAP} AS overlap
FROM corpus_pair p JOIN corpus_collection c ON c.id = p.collection_id WHERE p.id IN ({LEFT})"""

OPEN = f"""
WITH opened AS ({open_items(WANTED, seq="0")} ON CONFLICT DO NOTHING RETURNING 1)
SELECT count(*) FROM opened
"""


def count_unasked(campaign: Campaign, route: Route) -> int:
    """Count the pairs of the route that no person was ever asked about."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM ({LEFT}) found", _route_parameters(campaign, route))
        (count,) = cursor.fetchone()
    return int(count)


@transaction.atomic
def to_people(campaign: Campaign, route: Route) -> int:
    """Open a blind item for each such pair, and return how many. They stay labelled, and count as audits.

    They do not enter the estimate: it rests on the pairs that were drawn.
    """
    with connection.cursor() as cursor:
        cursor.execute(OPEN, _route_parameters(campaign, route))
        (count,) = cursor.fetchone()
    if count:
        counters.add(campaign.pk, "escalated:audit", count)
        forget_watermarks(campaign.collection)
    return int(count)


def _route_parameters(campaign: Campaign, route: Route) -> dict[str, int]:
    return {"campaign": campaign.pk, "label": route.label, "round": route.round, "margin": route.margin}
