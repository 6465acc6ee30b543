"""Signatures as Standard Webhooks has them: HMAC-SHA256 over id, time and body."""

import base64
import secrets
from datetime import UTC, datetime

from standardwebhooks import Webhook as Signer

from annotation.people.accounts.encryption import decrypt_text
from api.models import WebhookDelivery

PURPOSE = "webhook"


def make_secret() -> str:
    """Return a new secret: `whsec_` and 256 random bits in base64."""
    # The prefix of Standard Webhooks, by which libraries of receivers know the encoding.
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


def sign_delivery(delivery: WebhookDelivery, body: str, now: datetime | None = None) -> dict[str, str]:
    """Return the headers that sign a body: one signature by each secret that holds now. Raises Undecipherable."""
    now = now or datetime.now(UTC)
    name, webhook = delivery.header_id, delivery.webhook
    secrets_now = [webhook.secret]
    if webhook.former_secret_until is not None and webhook.former_secret_until > now:
        secrets_now.append(webhook.former_secret)
    signed = [Signer(decrypt_text(secret, PURPOSE)).sign(name, now, body) for secret in secrets_now]
    return {
        "webhook-id": name,
        "webhook-timestamp": str(int(now.timestamp())),
        # The specification separates signatures by spaces; a receiver accepts any one of them.
        "webhook-signature": " ".join(signed),
    }
