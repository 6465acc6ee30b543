"""Requests of webhooks: is a request from Quorum, and what does it tell?"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from standardwebhooks.webhooks import EmptyWebhookSecretError, Webhook, WebhookVerificationError


class VerificationError(ValueError):
    """A request that is not signed with the secret, or is more than five minutes old."""


@dataclass(frozen=True)
class WebhookEvent:
    """What a webhook was told. The same event may come twice: `id` is then the same."""

    id: str
    type: str
    timestamp: str
    data: dict[str, Any]


def verify(body: bytes | str, headers: Mapping[str, str], secret: str) -> WebhookEvent:
    """Return the event of a request that is signed with the secret (`whsec_...`). Raises VerificationError.

    `body`: as it came, before anything parsed it. `headers`: of any framework; their names may be in any case.
    """
    named = {name.lower(): value for name, value in headers.items()}
    try:
        told = Webhook(secret).verify(body, named)
        return WebhookEvent(named["webhook-id"], told["type"], told["timestamp"], told["data"])
    except WebhookVerificationError as error:
        raise VerificationError(str(error)) from error
    except (ValueError, KeyError, TypeError, EmptyWebhookSecretError) as error:
        raise VerificationError("the secret, or the body, is not of a webhook of Quorum") from error
