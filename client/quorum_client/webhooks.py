"""Verification of requests from Quorum's webhooks."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from standardwebhooks.webhooks import EmptyWebhookSecretError, Webhook, WebhookVerificationError


class VerificationError(ValueError):
    """The request is not signed with the secret, or more than five minutes old."""


@dataclass(frozen=True)
class WebhookEvent:
    """An event of a webhook. It may be delivered twice, with the same `id`."""

    id: str
    type: str
    timestamp: str
    data: dict[str, Any]


def verify(body: bytes | str, headers: Mapping[str, str], secret: str) -> WebhookEvent:
    """Return the event of a request that is signed with the secret (`whsec_...`). Raises VerificationError.

    `body`: the raw body. `headers`: those of any framework; their names may be in any case.
    """
    # WSGI, ASGI and http.server write the names of headers differently.
    lower = {name.lower(): value for name, value in headers.items()}
    try:
        # The library compares in constant time, and refuses timestamps that are five minutes off.
        event = Webhook(secret).verify(body, lower)
        return WebhookEvent(lower["webhook-id"], event["type"], event["timestamp"], event["data"])
    except WebhookVerificationError as error:
        raise VerificationError(str(error)) from error
    # A secret that is not Base64, a body that is not JSON, or one without the fields of an event.
    except (ValueError, KeyError, TypeError, EmptyWebhookSecretError) as error:
        raise VerificationError("the secret, or the body, is not of a webhook of Quorum") from error
