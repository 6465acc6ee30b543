"""Signatures as Standard Webhooks has them (standardwebhooks.com): HMAC-SHA256 over id, time and body."""

import base64
import secrets
from datetime import UTC, datetime

from standardwebhooks import Webhook as Signer

from annotation.accounts.encryption import Undecipherable, decrypt_text, encrypt_text
from api.models import Webhook, WebhookDelivery

PURPOSE = "webhook"


def make_secret() -> str:
    """Return a new secret: `whsec_` and 256 random bits in base64."""
    # The prefix of Standard Webhooks, by which libraries of receivers know the encoding.
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


def seal_secret(secret: str) -> str:
    """Encrypt a secret as it is stored."""
    return encrypt_text(secret, PURPOSE)


def sign_delivery(delivery: WebhookDelivery, body: str, now: datetime | None = None) -> dict[str, str]:
    """Return the headers that sign a body: one signature by each secret that holds now. Raises Undecipherable."""
    now = now or datetime.now(UTC)
    name = delivery.header_id
    signed = (Signer(secret).sign(name, now, body) for secret in _current_secrets(delivery.webhook, now))
    return {
        "webhook-id": name,
        "webhook-timestamp": str(int(now.timestamp())),
        # The specification separates signatures by spaces; a receiver accepts any one of them.
        "webhook-signature": " ".join(signed),
    }


def _current_secrets(webhook: Webhook, now: datetime) -> list[str]:
    found = [decrypt_text(webhook.secret, PURPOSE)]
    if webhook.former_secret_until is not None and webhook.former_secret_until > now:
        found.append(decrypt_text(webhook.former_secret, PURPOSE))
    return found


__all__ = ["Undecipherable", "make_secret", "seal_secret", "sign_delivery"]
