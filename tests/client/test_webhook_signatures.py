"""The client tells requests of Quorum from others: what the site signs it verifies, and nothing else."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from annotation.models import Role
from api.models import WebhookDelivery
from api.webhooks import services, signing
from quorum_client.webhooks import VerificationError, verify
from tests.factories import make_collection, make_member

pytestmark = pytest.mark.django_db


@pytest.fixture
def sent(settings: pytest.MonkeyPatch) -> tuple[str, WebhookDelivery, str]:
    collection = make_collection("c")
    alice = make_member(collection, "alice", Role.ADMIN)
    row, secret = services.create_webhook(
        collection, alice.user, url="https://ice.example/hook", events=["export.ready"]
    )
    delivery = WebhookDelivery.objects.create(webhook=row, event="export.ready", subject="export:1", data={"export": 1})
    delivery.refresh_from_db()
    body = json.dumps({"type": "export.ready", "timestamp": "2026-11-26T09:30:00+00:00", "data": {"export": 1}})
    return secret, delivery, body


def test_what_the_site_signed_is_an_event_and_during_a_replacement_either_secret_verifies(sent) -> None:
    secret, delivery, body = sent
    headers = signing.sign_delivery(delivery, body)
    event = verify(body.encode(), {name.title(): value for name, value in headers.items()}, secret)
    assert (event.id, event.type, event.data) == (delivery.header_id, "export.ready", {"export": 1})
    assert verify(body, headers, secret) == event
    fresh = services.replace_secret(delivery.webhook, delivery.webhook.made_by)
    delivery = WebhookDelivery.objects.select_related("webhook").get(pk=delivery.pk)
    headers = signing.sign_delivery(delivery, body)
    assert verify(body, headers, secret) == verify(body, headers, fresh)


def test_other_bodies_secrets_times_and_headers_are_refused(sent: tuple[str, WebhookDelivery, str]) -> None:
    secret, delivery, body = sent
    headers = signing.sign_delivery(delivery, body)
    old = signing.sign_delivery(delivery, body, datetime.now(UTC) - timedelta(minutes=6))
    for wrong in (
        (body.replace("1}", "2}"), headers, secret),
        (body, headers, signing.make_secret()),
        (body, headers, ""),
        (body, headers, "whsec_"),
        (body, old, secret),
        (body, {**headers, "webhook-signature": "v1"}, secret),
        (body, {**headers, "webhook-timestamp": "now"}, secret),
        (body, {"webhook-id": headers["webhook-id"]}, secret),
        (b"\xff", headers, secret),
        ("[]", signing.sign_delivery(delivery, "[]"), secret),
    ):
        with pytest.raises(VerificationError):
            verify(*wrong)
