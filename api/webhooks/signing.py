"""Signatures of Standard Webhooks: HMAC-SHA256 over id, time and body."""

import base64
import secrets
from datetime import UTC, datetime

from standardwebhooks import Webhook as Signer

from annotation.people.accounts.encryption import decrypt_text
from api.models import WebhookDelivery

PURPOSE = "webhook"


def make_secret() -> str:
    """Return a new secret: `whsec_` and 256 random bits in base64."""
    # The prefix of Standard Webhooks, by which receivers' libraries recognise the encoding.
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


def sign_delivery(delivery: WebhookDelivery, body: str, now: datetime | None = None) -> dict[str, str]:
    """Return the headers that sign a body, with each of the current secrets. Raises Undecipherable."""
    now = now or datetime.now(UTC)
    name, webhook = delivery.header_id, delivery.webhook
    current = [webhook.secret]
    if webhook.former_secret_until is not None and webhook.former_secret_until > now:
        current.append(webhook.former_secret)
    signatures = [Signer(decrypt_text(secret, PURPOSE)).sign(name, now, body) for secret in current]
    return {
        "webhook-id": name,
        "webhook-timestamp": str(int(now.timestamp())),
        # Separated by spaces, as specified; a receiver accepts any one of them.
        "webhook-signature": " ".join(signatures),
    }
