"""REST API of webhooks: list, create, change, delete, replace the secret, test, read the log, replay."""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Field, Router, Schema, Status
from ninja.decorators import decorate_view

from api.authentication import MANAGE, may, scope_of
from api.etags import require_match
from api.idempotency import once
from api.models import Webhook, WebhookDelivery
from api.operations import COLLECTION_PATH
from api.paging import Cursor, Limit, Page, find_row, page_of
from api.problems import CleanText, RequestBody
from api.webhooks import services
from api.webhooks.addresses import LONGEST
from api.webhooks.selectors import find_webhook
from api.withheld import GuardedSchema
from corpus.holding import hold_row

router = Router(tags=["webhooks"])
ONE = f"{COLLECTION_PATH}/webhooks/{{number}}"
State = WebhookDelivery.DeliveryState


class WebhookIn(RequestBody):
    """A new webhook."""

    url: str = Field(min_length=1, max_length=LONGEST, description="Begins with https://.")
    events: list[Webhook.Event] = Field(min_length=1, max_length=len(Webhook.Event))
    description: CleanText = Field("", max_length=200)


class WebhookChanges(RequestBody):
    """Changes of a webhook; a field that is null stays as it is."""

    url: str | None = Field(None, min_length=1, max_length=LONGEST)
    events: list[Webhook.Event] | None = Field(None, min_length=1, max_length=len(Webhook.Event))
    description: CleanText | None = Field(None, max_length=200)
    active: bool | None = Field(None, description="False: nothing is sent, and what is pending fails.")


class WebhookOut(GuardedSchema):
    """A webhook."""

    number: int
    url: str = Field(description="Without its path for a token without the scope `manage`.")
    events: list[str]
    description: str
    active: bool
    disabled: str = Field(description="person, failing or gone: why it is not active; else empty.")
    failing_since: datetime | None
    created_at: datetime


class WebhookSecretOut(Schema):
    """A webhook with its new secret, which is not shown again."""

    webhook: WebhookOut
    secret: str


class WebhookAttemptOut(GuardedSchema):
    """An attempt to deliver an event. `answer`: first 1,000 bytes of the response, or the connection's error."""

    at: datetime
    status: int | None
    milliseconds: int
    problem: str = Field(description="Empty: delivered. Else status, redirect, timeout, name, address, ...")
    answer: str = Field(description="Masked for a token without the scope `manage`.")


class WebhookDeliveryOut(Schema):
    """An event and the attempts to deliver it. `id` is the header webhook-id."""

    number: int
    id: str
    event: str
    data: dict[str, Any]
    state: State
    created_at: datetime
    attempts: list[WebhookAttemptOut]


class ReplayIn(RequestBody):
    """Deliveries to send again."""

    delivery: int | None = Field(None, ge=1, lt=1 << 63, description="Its number; null: all that failed.")


class ReplayedOut(Schema):
    """Number of deliveries that will be sent again."""

    replayed: int


@router.get("/collections/{slug:name}/webhooks", auth=may("admin"), response=Page[WebhookOut])
def list_webhooks(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the webhooks."""
    return page_of(Webhook.objects.filter(collection=scope_of(request).collection), after, limit, _show_webhook)


@router.post("/collections/{slug:name}/webhooks", auth=may("admin", MANAGE), response={201: WebhookSecretOut})
def create_webhook(request: HttpRequest, name: str, body: WebhookIn) -> Any:
    """Create a webhook; only this response has its secret."""
    scope = scope_of(request)
    # Not repeatable: the stored answer would contain the secret.
    row, secret = services.create_webhook(
        scope.collection, scope.user, url=body.url, events=body.events, description=body.description
    )
    row.refresh_from_db()
    return Status(201, {"webhook": _show_webhook(row), "secret": secret})


@router.get("/collections/{slug:name}/webhooks/{number}", auth=may("admin"), response=WebhookOut)
def read_webhook(request: HttpRequest, name: str, number: int) -> Any:
    """Read a webhook."""
    return _show_webhook(find_webhook(scope_of(request).collection, number))


@router.patch("/collections/{slug:name}/webhooks/{number}", auth=may("admin", MANAGE), response=WebhookOut)
def change_webhook(request: HttpRequest, name: str, number: int, body: WebhookChanges) -> Any:
    """Change a webhook, disable or enable it."""
    with transaction.atomic():
        row = _hold_webhook(request, number)
        services.change_webhook(row, scope_of(request).user, **body.dict())
    return _show_webhook(row)


@router.delete("/collections/{slug:name}/webhooks/{number}", auth=may("admin", MANAGE), response={204: None})
def delete_webhook(request: HttpRequest, name: str, number: int) -> Any:
    """Delete a webhook with its log."""
    with transaction.atomic():
        services.delete_webhook(_hold_webhook(request, number), scope_of(request).user)
    return Status(204, None)


@router.post(f"{ONE}/secret", auth=may("admin", MANAGE), response=WebhookSecretOut)
def replace_secret(request: HttpRequest, name: str, number: int) -> Any:
    """Replace the secret; for 24 hours the former one signs, too."""
    with transaction.atomic():
        row = _hold_webhook(request, number)
        # Not repeatable: the stored answer would contain the secret.
        secret = services.replace_secret(row, scope_of(request).user)
    return {"webhook": _show_webhook(row), "secret": secret}


@router.post(f"{ONE}/test", auth=may("admin", MANAGE), response={201: WebhookDeliveryOut})
@decorate_view(once)
def send_test(request: HttpRequest, name: str, number: int) -> Any:
    """Send the event webhook.test, which only tests the delivery."""
    with transaction.atomic():
        delivery = services.send_test(_hold_webhook(request, number), scope_of(request).user)
        delivery.refresh_from_db()
    return Status(201, _show_delivery(delivery))


@router.get(f"{ONE}/deliveries", auth=may("admin"), response=Page[WebhookDeliveryOut])
def list_deliveries(
    request: HttpRequest, name: str, number: int, state: State | None = None, after: Cursor = 0, limit: Limit = 100
) -> Any:
    """List the deliveries of the last 30 days, the oldest first."""
    rows = WebhookDelivery.objects.filter(webhook=find_webhook(scope_of(request).collection, number)).prefetch_related(
        "log"
    )
    return page_of(rows.filter(state=state) if state else rows, after, limit, _show_delivery)


@router.post(f"{ONE}/replay", auth=may("admin", MANAGE), response=ReplayedOut)
@decorate_view(once)
def replay_deliveries(request: HttpRequest, name: str, number: int, body: ReplayIn) -> Any:
    """Send one delivery, or all failed ones, again with their ids."""
    with transaction.atomic():
        row = _hold_webhook(request, number)
        rows = WebhookDelivery.objects.filter(webhook=row)
        if body.delivery is None:
            rows = rows.filter(state=State.FAILED)
        else:
            rows = rows.filter(pk=find_row(rows, body.delivery, _("Delivery not found.")).pk)
        replayed = services.replay_deliveries(row, scope_of(request).user, rows)
    return {"replayed": replayed}


def _hold_webhook(request: HttpRequest, number: int) -> Webhook:
    """Return a webhook whose state matches If-Match, locked until the transaction ends."""
    row = hold_row(find_webhook(scope_of(request).collection, number))
    require_match(request, WebhookOut, _show_webhook(row))
    return row


def _show_webhook(row: Webhook) -> dict[str, Any]:
    fields = ("url", "events", "description", "disabled", "failing_since", "created_at")
    return {"number": row.number, **{name: getattr(row, name) for name in fields}, "active": not row.disabled}


def _show_delivery(row: WebhookDelivery) -> dict[str, Any]:
    names = ("event", "data", "state", "created_at")
    fields = {"number": row.pk, "id": row.header_id, **{name: getattr(row, name) for name in names}}
    return {**fields, "attempts": sorted(row.log.all(), key=lambda attempt: attempt.pk)}
