"""Queries for the pages and operations of webhooks and their deliveries."""

from typing import Any

from django.db.models import Count, Max, Prefetch, Q, QuerySet
from django.http import QueryDict
from django.utils.translation import gettext as _

from api.models import Webhook, WebhookAttempt, WebhookDelivery
from corpus.models import Collection
from corpus.numbered import numbered_or_404

PAGE = 50
State = WebhookDelivery.DeliveryState


def list_webhooks(collection: Collection) -> QuerySet[Webhook]:
    """Return a collection's webhooks with their counts of pending and failed deliveries, the oldest first."""
    state = "deliveries__state"
    # One statement for all webhooks, of which a collection has at most 20.
    rows = Webhook.objects.filter(collection=collection).annotate(
        pending=Count("deliveries", filter=Q(**{state: State.PENDING})),
        failed=Count("deliveries", filter=Q(**{state: State.FAILED})),
        last_delivered=Max("deliveries__ended_at", filter=Q(**{state: State.DELIVERED})),
    )
    return rows.order_by("pk")


def find_webhook(collection: Collection, number: int) -> Webhook:
    """Return a webhook by its number in the collection. Raises Http404."""
    return numbered_or_404(Webhook.objects.select_related("collection"), collection, number, _("Webhook not found."))


def deliveries_of(webhook: Webhook) -> QuerySet[WebhookDelivery]:
    """Return the deliveries of a webhook with their attempts, both the newest first."""
    log = Prefetch("log", WebhookAttempt.objects.order_by("-pk"))
    return WebhookDelivery.objects.filter(webhook=webhook).prefetch_related(log).order_by("-pk")


def read_delivery_page(webhook: Webhook, query: QueryDict) -> dict[str, Any]:
    """Return a page of the log by a query string. `older`: `before` of the next page; None: there is none."""
    rows, state = deliveries_of(webhook), query.get("state", "")
    if state in State.values:
        rows = rows.filter(state=state)
    number = query.get("before", "")
    # PostgreSQL's bigint has 19 digits; int() of thousands of digits would only cost time.
    before = int(number) if number.isascii() and number.isdecimal() and len(number) < 20 else 0
    if 0 < before < 1 << 63:
        rows = rows.filter(pk__lt=before)
    # One more than is shown tells whether there is an older page.
    deliveries = list(rows[: PAGE + 1])
    older = deliveries[PAGE - 1].pk if len(deliveries) > PAGE else None
    state = state if state in State.values else ""
    return {"deliveries": deliveries[:PAGE], "state": state, "older": older, "is_newest": not before}
