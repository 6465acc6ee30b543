"""Failed pairs that go to people after all (`--failed-to-people`), reason `error`."""

from django.db import connection, transaction

from corpus.collections.task_order import PRIORITY_SQL, open_items
from judges.campaigns import counters
from judges.models import Campaign

WANTED = """
SELECT collection, pair, %(campaign)s::bigint AS campaign, 'error' AS reason, priority, overlap
FROM failed WHERE NOT EXISTS (SELECT 1 FROM corpus_item i
    WHERE i.pair_id = pair AND i.reason = 'error' AND i.state IN ('open', 'conflict'))"""
ESCALATE = f"""
WITH failed AS (
    UPDATE judges_work w SET state = 'escalated', reason = 'error' FROM corpus_pair p, corpus_collection c
    WHERE w.campaign_id = %(campaign)s AND w.state = 'failed' AND p.id = w.pair_id AND c.id = p.collection_id
    RETURNING p.id AS pair, p.collection_id AS collection, c.overlap,
        {PRIORITY_SQL.format(order="c.order", seed="c.seed")} AS priority
), opened AS ({open_items(WANTED)})
SELECT count(*) FROM failed
"""


@transaction.atomic
def failed_to_people(campaign: Campaign) -> int:
    """Open an item for every failed pair of the campaign; how many pairs."""
    with connection.cursor() as cursor:
        cursor.execute(ESCALATE, {"campaign": campaign.pk})
        (count,) = cursor.fetchone()
    if count:
        counters.add(campaign.pk, "failed", -count)
        counters.add(campaign.pk, "escalated:error", count)
    return int(count)
