"""Delivering due events: claimed under a lease, sent concurrently, in order per subject, retried after failures.

Delivery is at least once: if a worker is killed between the receiver's response and its own commit, another
one sends the event again with the same id.
"""

import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone

from annotation.people.accounts.encryption import Undecipherable
from api.models import Webhook, WebhookAttempt, WebhookDelivery
from api.webhooks.sending import BackgroundLoop, Problem, ReceiverAnswer, send_request
from api.webhooks.services import disable_webhook
from api.webhooks.signing import sign_delivery
from store.sql import fetch_row, fetch_rows, read_sql

SIDE_BY_SIDE = 32
# A limit, so that a slow receiver does not delay others.
OF_ONE_WEBHOOK = 8
# Longer than a request (`sending.TIMEOUT_S`) and the recording of its response.
LEASE_S = 30.0
# About 20 hours with the default pauses.
MOST_ATTEMPTS = 10
# Longer pauses would add days without much chance of success.
LONGEST_PAUSE_S = 6 * 3600
# How soon a worker with slow requests notices other due deliveries, or that it has to stop.
POLL_S = 1.0
# Standard Webhooks: the receiver wants no more events.
GONE = 410

State = WebhookDelivery.DeliveryState
Requests = dict["Future[ReceiverAnswer]", WebhookDelivery]

CLAIM = read_sql(__file__, "claim_deliveries")
ANY_DUE = read_sql(__file__, "is_any_due")


def is_any_due() -> bool:
    """Return whether any delivery is due now."""
    return bool(fetch_row(ANY_DUE)[0])


def deliver_due(should_stop: Callable[[], bool] = lambda: False) -> int:
    """Send due deliveries until there are none, or this worker stops; return the number of requests."""
    count = 0
    requests: Requests = {}
    with BackgroundLoop() as loop:
        while True:
            # A worker that stops claims nothing more, and waits for its open requests.
            for delivery in [] if should_stop() else claim_due(list(requests.values())):
                body = build_body(delivery)
                try:
                    headers = sign_delivery(delivery, body)
                except Undecipherable:
                    record_answer(delivery, ReceiverAnswer(None, 0, Problem.SECRET))
                    continue
                requests[loop.start(send_request(delivery.webhook.url, headers, body))] = delivery
            if not requests:
                return count
            done, _ = wait(requests, timeout=POLL_S, return_when=FIRST_COMPLETED)
            for request in done:
                record_answer(requests.pop(request), request.result())
            count += len(done)


def claim_due(out: Sequence[WebhookDelivery] = ()) -> list[WebhookDelivery]:
    """Claim deliveries for as many requests as may run beside the open ones (`out`), under a lease."""
    room = SIDE_BY_SIDE - len(out)
    if room <= 0:
        return []
    counts = Counter(delivery.webhook_id for delivery in out)
    # Where jobs have a shorter lease (QUORUM_LEASE_SECONDS), deliveries have it, too.
    lease = min(LEASE_S, float(settings.LEASE_SECONDS))
    limits: dict[str, Any] = {"each": OF_ONE_WEBHOOK, "most": room, "lease": lease}
    limits |= {"webhooks": list(counts), "counts": list(counts.values())}
    claimed = [pk for (pk,) in fetch_rows(CLAIM, **limits)]
    # RETURNING has no order, and the earliest event is sent first.
    return list(WebhookDelivery.objects.select_related("webhook__collection").filter(pk__in=claimed).order_by("pk"))


def build_body(delivery: WebhookDelivery) -> str:
    """Return the body of a delivery: the same in every attempt."""
    data = {"collection": delivery.webhook.collection.name, **delivery.data}
    message = {"type": delivery.event, "timestamp": delivery.created_at.isoformat(), "data": data}
    # Only of values that never change, so that each attempt sends the same bytes.
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"))


@transaction.atomic
def record_answer(delivery: WebhookDelivery, answer: ReceiverAnswer) -> None:
    """Record an attempt, and end the delivery or schedule the next one. Where the claim is lost, only record it.

    1. Lock the webhook, before its deliveries as everywhere else.
    2. Write the attempt to the log.
    3. End the delivery or let it wait, unless another worker has claimed it.
    4. Disable a webhook whose receiver is gone or has failed for days.
    """
    webhook = Webhook.objects.select_for_update(no_key=True, of=("self",)).select_related("collection")
    row = webhook.filter(pk=delivery.webhook_id).first()
    if row is None:
        return
    WebhookAttempt.objects.create(
        delivery=delivery,
        status=answer.status,
        milliseconds=answer.milliseconds,
        problem=answer.problem,
        answer=answer.text,
    )
    # A worker that claims it after this one's lease raises the token: then these updates match no row.
    claimed = WebhookDelivery.objects.filter(pk=delivery.pk, fencing_token=delivery.fencing_token, state=State.PENDING)
    since = row.failing_since
    row.failing_since = (since or timezone.now()) if answer.problem else None
    if row.failing_since != since:
        row.save(update_fields=["failing_since"])
    if row.failing_since is None:
        claimed.update(state=State.DELIVERED, ended_at=Now())
        return
    if delivery.attempts + 1 >= MOST_ATTEMPTS:
        claimed.update(state=State.FAILED, ended_at=Now(), attempts=F("attempts") + 1)
    else:
        pause = timedelta(seconds=pause_after(delivery.attempts + 1))
        claimed.update(due_at=Now() + pause, attempts=F("attempts") + 1)
    if row.disabled:
        return
    if answer.status == GONE:
        disable_webhook(row, Webhook.Disabled.GONE)
    elif row.failing_since < timezone.now() - timedelta(days=settings.WEBHOOK_FAILING_DAYS):
        # A receiver with rare events is not disabled for a single failure.
        failures = WebhookAttempt.objects.filter(delivery__webhook=row, at__gte=row.failing_since)
        if failures.count() >= MOST_ATTEMPTS:
            disable_webhook(row, Webhook.Disabled.FAILING)


def pause_after(failures: int) -> float:
    """Return the seconds until the next attempt: 5, 20, 80, ... up to six hours, each varied by 10%."""
    pause = min(settings.WEBHOOK_RETRY_SECONDS * 4 ** (failures - 1), LONGEST_PAUSE_S)
    # Varied, so that deliveries that failed together are not all retried together.
    return float(pause * random.uniform(0.9, 1.1))
