"""Delivering what is due: claimed under a lease, sent side by side, in order of each subject, again after a failure.

At least once: a worker that is killed between the receiver's answer and its own commit leaves the
delivery to another one, which sends it again under the same id.
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
# So that a slow receiver holds up no other.
OF_ONE_WEBHOOK = 8
# Longer than a request may take (`sending.TIMEOUT_S`) and its answer needs to be recorded.
LEASE_S = 30.0
# About 20 hours with the usual pauses.
MOST_ATTEMPTS = 10
# Pauses that grow further would add days and hardly a chance.
LONGEST_PAUSE_S = 6 * 3600
# How soon a worker that has slow requests out notices that others became due, or that it shall end.
POLL_S = 1.0
# Standard Webhooks: a receiver that answers this wants nothing any more.
GONE = 410

State = WebhookDelivery.DeliveryState
Requests = dict["Future[ReceiverAnswer]", WebhookDelivery]

CLAIM = read_sql(__file__, "claim_deliveries")
ANY_DUE = read_sql(__file__, "is_any_due")


def is_any_due() -> bool:
    """Return whether any delivery is due now."""
    return bool(fetch_row(ANY_DUE)[0])


def deliver_due(stopping: Callable[[], bool] = lambda: False) -> int:
    """Send what is due until nothing is, or this worker ends; return the number of requests."""
    made = 0
    requests: Requests = {}
    with BackgroundLoop() as loop:
        while True:
            # A worker that ends claims nothing more, and waits for the requests that are out.
            for delivery in [] if stopping() else claim_due(list(requests.values())):
                body = build_body(delivery)
                try:
                    headers = sign_delivery(delivery, body)
                except Undecipherable:
                    record_answer(delivery, ReceiverAnswer(None, 0, Problem.SECRET))
                    continue
                requests[loop.start(send_request(delivery.webhook.url, headers, body))] = delivery
            if not requests:
                return made
            done, _ = wait(requests, timeout=POLL_S, return_when=FIRST_COMPLETED)
            for request in done:
                record_answer(requests.pop(request), request.result())
            made += len(done)


def claim_due(out: Sequence[WebhookDelivery] = ()) -> list[WebhookDelivery]:
    """Claim deliveries for as many requests as may go out beside those that are `out`; the claim holds for a while."""
    room = SIDE_BY_SIDE - len(out)
    if room <= 0:
        return []
    counted = Counter(one.webhook_id for one in out)
    # A site that takes over from dead workers sooner than that takes over their deliveries as soon.
    lease = min(LEASE_S, float(settings.LEASE_SECONDS))
    given: dict[str, Any] = {"each": OF_ONE_WEBHOOK, "most": room, "lease": lease}
    given |= {"webhooks": list(counted), "counts": list(counted.values())}
    claimed = [pk for (pk,) in fetch_rows(CLAIM, **given)]
    # RETURNING has no order; the earliest event is sent first.
    return list(WebhookDelivery.objects.select_related("webhook__collection").filter(pk__in=claimed).order_by("pk"))


def build_body(delivery: WebhookDelivery) -> str:
    """Return the body of a delivery: the same in every attempt."""
    data = {"collection": delivery.webhook.collection.name, **delivery.data}
    message = {"type": delivery.event, "timestamp": delivery.created_at.isoformat(), "data": data}
    # Built of what never changes: a later attempt must carry the same bytes.
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"))


@transaction.atomic
def record_answer(delivery: WebhookDelivery, answer: ReceiverAnswer) -> None:
    """Log an attempt, and end the delivery or let it wait; whoever lost the claim adds to the log alone."""
    # The webhook's row first, as whoever changes or deletes it does.
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
    # Whoever claimed it after this worker's lease raised the token: then these updates find no row.
    held = WebhookDelivery.objects.filter(pk=delivery.pk, fencing_token=delivery.fencing_token, state=State.PENDING)
    since = row.failing_since
    row.failing_since = (since or timezone.now()) if answer.problem else None
    # Most answers change nothing here.
    if row.failing_since != since:
        row.save(update_fields=["failing_since"])
    if row.failing_since is None:
        held.update(state=State.DELIVERED, ended_at=Now())
        return
    if delivery.attempts + 1 >= MOST_ATTEMPTS:
        held.update(state=State.FAILED, ended_at=Now(), attempts=F("attempts") + 1)
    else:
        pause = timedelta(seconds=pause_after(delivery.attempts + 1))
        held.update(due_at=Now() + pause, attempts=F("attempts") + 1)
    if row.disabled:
        return
    if answer.status == GONE:
        disable_webhook(row, Webhook.Disabled.GONE)
    elif row.failing_since < timezone.now() - timedelta(days=settings.WEBHOOK_FAILING_DAYS):
        # A receiver that is rarely told anything is not given up for a single failure.
        failures = WebhookAttempt.objects.filter(delivery__webhook=row, at__gte=row.failing_since)
        if failures.count() >= MOST_ATTEMPTS:
            disable_webhook(row, Webhook.Disabled.FAILING)


def pause_after(failures: int) -> float:
    """Return the seconds until the next attempt: 5, 20, 80, ... up to six hours, within 10%."""
    pause = min(settings.WEBHOOK_RETRY_SECONDS * 4 ** (failures - 1), LONGEST_PAUSE_S)
    # Deliveries that failed together, as the receiver was down, do not all come back at the same second.
    return float(pause * random.uniform(0.9, 1.1))
