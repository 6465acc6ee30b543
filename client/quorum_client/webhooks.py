"""Verification of the requests that Quorum's webhooks send to a receiver."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from standardwebhooks.webhooks import EmptyWebhookSecretError, Webhook, WebhookVerificationError


class VerificationError(ValueError):
    """A request that is not signed with the secret, or is more than five minutes old."""


@dataclass(frozen=True)
class WebhookEvent:
    """Event that a webhook was told of. It may come twice, with the same `id`."""

    id: str
    type: str
    timestamp: str
    data: dict[str, Any]


def verify(body: bytes | str, headers: Mapping[str, str], secret: str) -> WebhookEvent:
    """Return the event of a request that is signed with the secret (`whsec_...`). Raises VerificationError.

    `body`: as it came, before anything parsed it. `headers`: of any framework; their names may be in any case.
    """
    # WSGI, ASGI and http.server each write the names of headers differently.
    named = {name.lower(): value for name, value in headers.items()}
    try:
        # The library compares in constant time, and refuses times that are five minutes off.
        event = Webhook(secret).verify(body, named)
        return WebhookEvent(named["webhook-id"], event["type"], event["timestamp"], event["data"])
    except WebhookVerificationError as error:
        raise VerificationError(str(error)) from error
    # A secret that is no Base64, a body that is no JSON, or one without the fields of an event.
    except (ValueError, KeyError, TypeError, EmptyWebhookSecretError) as error:
        raise VerificationError("the secret, or the body, is not of a webhook of Quorum") from error
