"""Fields that grant access by themselves, and are shown only to tokens with the scope `manage`.

A token with the scope `read` reads what its person may see, but must not gain more than that: anyone
who opens an invitation's link may become an admin, and many receivers of webhooks recognise their sender
only by the address. `FIELDS` lists all such fields. Their schemas are `GuardedSchema`s, and
`tests/api/test_withheld.py` walks all reads.
"""

from collections.abc import Callable, Mapping
from typing import Any, Self
from urllib.parse import urlsplit

from ninja import Schema
from pydantic import ValidationInfo, model_validator

from api.models import AccessToken

MASK = "***"
# Key of a validation's context that masks the fields where there is no request.
WITHHELD = "withheld"


FIELDS: Mapping[str, Callable[[Any], Any]] = {
    "InvitationOut.link": lambda link: None,
    # Scheme and host, without path and query.
    "WebhookOut.url": lambda url: f"{urlsplit(url).scheme}://{urlsplit(url).hostname}/{MASK}",
    # A receiver's response may repeat the request, with the receiver's address.
    "WebhookAttemptOut.answer": lambda text: text and MASK,
}


class GuardedSchema(Schema):
    """A response with a field of `FIELDS`, unmasked only for tokens with the scope `manage`."""

    @model_validator(mode="after")
    def _withhold(self, info: ValidationInfo) -> Self:
        context = info.context or {}
        # Without a request the data are compared (api.etags) and not sent.
        withheld = bool(context.get(WITHHELD))
        if (request := context.get("request")) is not None:
            token: AccessToken | None = getattr(request, "access_token", None)
            withheld = withheld or token is None or AccessToken.TokenScope.MANAGE not in token.scopes
        if withheld:
            for name, mask in fields_of(type(self)).items():
                setattr(self, name, mask(getattr(self, name)))
        return self


def fields_of(schema: type[Schema]) -> dict[str, Callable[[Any], Any]]:
    """Return the masked fields of a schema, each with the function that masks it."""
    prefix = f"{schema.__name__}."
    return {key.removeprefix(prefix): mask for key, mask in FIELDS.items() if key.startswith(prefix)}
