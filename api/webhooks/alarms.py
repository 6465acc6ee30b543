"""Alarms of audits that people answer after the end, when no worker looks."""

from django.utils import timezone

from api.models import Webhook
from judges.campaigns import counters, route_breakers
from judges.models import Campaign
from store.sql import execute, fetch_rows, read_sql

# A judgment is dated by the beginning of its transaction, which may take a while.
OVERLAP_S = 300

ANSWERED = read_sql(__file__, "find_answered_audits")
WRITE = read_sql(__file__, "write_alarm")


def write_alarms() -> None:
    """Write an event for each route that surely fails its audit, where a webhook wants that and was not told."""
    hooks = Webhook.objects.filter(disabled="", events__contains=[Webhook.Event.AUDIT_ALARM])
    # Most sites have no such webhook: the joins below are spared.
    if not hooks.exists():
        return
    # Before the query: an answer that comes meanwhile is looked at the next time.
    now = timezone.now()
    answered = [pk for (pk,) in fetch_rows(ANSWERED, overlap=OVERLAP_S)]
    for campaign in Campaign.objects.select_related("collection").filter(pk__in=answered):
        audits = route_breakers.answered_audits(campaign.pk, campaign.collection.relevant_from)
        for route in sorted(route_breakers.tripped_routes(audits, counters.read(campaign.pk))):
            about = {"collection": campaign.collection_id, "campaign": campaign.pk, "number": campaign.number}
            execute(WRITE, **about, route=route)
    hooks.update(alarms_looked_at=now)
