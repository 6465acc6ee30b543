"""Alarms of label audits that people answer when no worker looks any more, because their campaign has ended."""

from typing import Any

from django.db import connection
from django.utils import timezone

from api.models import Webhook
from judges.campaigns import counters, route_breakers
from judges.models import Campaign

# A judgment is dated by the beginning of its transaction, which may take a while.
OVERLAP_S = 300

# Campaigns with an answer to their audit since their webhooks were looked through.
ANSWERED = """
SELECT DISTINCT a.campaign_id FROM api_webhook w
JOIN corpus_item i ON i.collection_id = w.collection_id AND i.state = 'settled' AND i.reason = 'audit'
    AND i.settled_at > w.alarms_looked_at - make_interval(secs => %s)
JOIN judges_audit a ON a.item_id = i.id
WHERE w.disabled = '' AND 'audit.alarm' = ANY (w.events)
"""

# As the trigger on counters writes it, which tells the same route of the same campaign once with this.
WRITE = """
SELECT write_webhook_event(%(collection)s, 'audit.alarm', 'campaign:' || %(campaign)s::text,
    jsonb_build_object('campaign', %(number)s::int, 'route', %(route)s::text),
    'audit.alarm:' || %(campaign)s::text || ':' || %(route)s::text)
"""


def write_alarms() -> None:
    """Write an event for each route that surely fails its audit, where a webhook wants that and was not told."""
    hooks = Webhook.objects.filter(disabled="", events__contains=[Webhook.Event.AUDIT_ALARM])
    # Most sites have no such webhook: the joins below are spared.
    if not hooks.exists():
        return
    # Before the query: an answer that comes meanwhile is looked at the next time.
    now = timezone.now()
    with connection.cursor() as cursor:
        cursor.execute(ANSWERED, [OVERLAP_S])
        for campaign in Campaign.objects.select_related("collection").filter(pk__in=[pk for (pk,) in cursor]):
            found = route_breakers.answered_audits(campaign.pk, campaign.collection.relevant_from)
            for route in sorted(route_breakers.tripped_routes(found, counters.read(campaign.pk))):
                about: dict[str, Any] = {"collection": campaign.collection_id, "campaign": campaign.pk}
                cursor.execute(WRITE, about | {"number": campaign.number, "route": route})
    hooks.update(alarms_looked_at=now)
