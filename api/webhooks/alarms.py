"""Alarms of label audits that people answer after the campaign has ended."""

from django.utils import timezone

from api.models import Webhook
from judges.costs import counters
from judges.engine import route_breakers
from judges.models import Campaign
from store.sql import execute, fetch_rows, read_sql

# Judgments have the time at which their transaction began, which may be a while before the commit.
OVERLAP_S = 300

ANSWERED = read_sql(__file__, "find_answered_audits")
WRITE = read_sql(__file__, "write_alarm")


def write_alarms() -> None:
    """Write an event for each route that significantly fails its audit, for webhooks that have not had it."""
    hooks = Webhook.objects.filter(disabled="", events__contains=[Webhook.Event.AUDIT_ALARM])
    # Most sites have no such webhook, and need none of the joins below.
    if not hooks.exists():
        return
    # Before the query, so that answers that come meanwhile are considered next time.
    now = timezone.now()
    answered = [pk for (pk,) in fetch_rows(ANSWERED, overlap=OVERLAP_S)]
    for campaign in Campaign.objects.select_related("collection").filter(pk__in=answered):
        audits = route_breakers.answered_audits(campaign.pk, campaign.collection.relevant_from)
        for route in sorted(route_breakers.tripped_routes(audits, counters.read(campaign.pk))):
            values = {"collection": campaign.collection_id, "campaign": campaign.pk, "number": campaign.number}
            execute(WRITE, **values, route=route)
    hooks.update(alarms_looked_at=now)
