"""Queries for the pages and operations of webhooks and their deliveries."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Max, Prefetch, Q, QuerySet
from django.http import QueryDict
from django.utils.functional import Promise

from api.models import Webhook, WebhookAttempt, WebhookDelivery
from corpus.models import Collection

PAGE = 50
State = WebhookDelivery.DeliveryState


@dataclass(frozen=True, slots=True)
class WebhookRow:
    """A webhook with its counts, as the list shows it."""

    webhook: Webhook
    events: list[Promise | str]
    pending: int
    failed: int
    last_delivered: Any


def list_webhooks(collection: Collection) -> list[WebhookRow]:
    """Return a collection's webhooks with what is pending and failed, the oldest first."""
    state = "deliveries__state"
    # One statement counts for all webhooks, of which a collection has 20 at most.
    rows = Webhook.objects.filter(collection=collection).annotate(
        pending=Count("deliveries", filter=Q(**{state: State.PENDING})),
        failed=Count("deliveries", filter=Q(**{state: State.FAILED})),
        last_delivered=Max("deliveries__ended_at", filter=Q(**{state: State.DELIVERED})),
    )
    return [
        WebhookRow(row, event_labels(row), row.pending, row.failed, row.last_delivered) for row in rows.order_by("pk")
    ]


def event_labels(webhook: Webhook) -> list[Promise | str]:
    """Return the events that a webhook wants, in words."""
    return [Webhook.Event(one).label for one in webhook.events]


def deliveries_of(webhook: Webhook) -> QuerySet[WebhookDelivery]:
    """Return the deliveries of a webhook with their attempts, the newest first of both."""
    log = Prefetch("log", WebhookAttempt.objects.order_by("-pk"))
    return WebhookDelivery.objects.filter(webhook=webhook).prefetch_related(log).order_by("-pk")


@dataclass(frozen=True, slots=True)
class DeliveryPage:
    """A part of the log: `older` is the number below which the next part begins, None where there is none."""

    deliveries: list[WebhookDelivery]
    state: str
    older: int | None
    is_newest: bool


def read_delivery_page(webhook: Webhook, given: QueryDict) -> DeliveryPage:
    """Return the part of the log that a page's address asks for; wrong values in it are ignored."""
    rows, state = deliveries_of(webhook), given.get("state", "")
    if state in State.values:
        rows = rows.filter(state=state)
    asked = given.get("before", "")
    # PostgreSQL's bigint has 19 digits; thousands of them would only cost time.
    before = int(asked) if asked.isascii() and asked.isdecimal() and len(asked) < 20 else 0
    if 0 < before < 1 << 63:
        rows = rows.filter(pk__lt=before)
    # One more than is shown says whether there is an older part.
    found = list(rows[: PAGE + 1])
    older = found[PAGE - 1].pk if len(found) > PAGE else None
    return DeliveryPage(found[:PAGE], state if state in State.values else "", older, not before)
