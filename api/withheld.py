"""What opens something by itself, and so is shown only to a token with the scope `manage`.

A token of scope `read` reads what its person may see, but must not become more than that: a link of
an invitation makes an admin of whoever opens it, and many receivers of webhooks know their sender
by the address alone. `FIELDS` is the one list of such fields. A schema with one of them is a
`GuardedSchema`, and `tests/api/test_withheld.py` walks all reads.
"""

from collections.abc import Callable, Mapping
from typing import Any, Self
from urllib.parse import urlsplit

from ninja import Schema
from pydantic import ValidationInfo, model_validator

from api.models import AccessToken

MASK = "***"
# Of a validation's context: as a reader sees it, whose token is not at hand.
WITHHELD = "withheld"


FIELDS: Mapping[str, Callable[[Any], Any]] = {
    "InvitationOut.link": lambda link: None,
    # Where the address leads, without its path and query.
    "WebhookOut.url": lambda url: f"{urlsplit(url).scheme}://{urlsplit(url).hostname}/{MASK}",
    # A receiver may answer with what it was sent, its own address included.
    "WebhookAttemptOut.answer": lambda text: text and MASK,
}


class GuardedSchema(Schema):
    """An answer with a field of `FIELDS`: whole for a token with the scope `manage` alone."""

    @model_validator(mode="after")
    def _withhold(self, info: ValidationInfo) -> Self:
        context = info.context or {}
        # Without a request it is compared (api.etags), and not sent.
        withheld = bool(context.get(WITHHELD))
        if (request := context.get("request")) is not None:
            token: AccessToken | None = getattr(request, "access_token", None)
            withheld = withheld or token is None or AccessToken.TokenScope.MANAGE not in token.scopes
        if withheld:
            for name, show in fields_of(type(self)).items():
                setattr(self, name, show(getattr(self, name)))
        return self


def fields_of(schema: type[Schema]) -> dict[str, Callable[[Any], Any]]:
    """Return the fields of a schema that are withheld, and what is shown instead."""
    owned = f"{schema.__name__}."
    return {key.removeprefix(owned): show for key, show in FIELDS.items() if key.startswith(owned)}
