"""If-Match: a change applies only to the state that was read. Reads have Django's ETags."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.cache import set_response_etag
from django.utils.http import parse_etags
from django.utils.translation import gettext as _
from ninja import Schema
from ninja.renderers import JSONRenderer

from api.withheld import WITHHELD

IF_MATCH = "If-Match"


class PreconditionFailed(Exception):
    """The object's state is not the one that If-Match names."""


def require_match(request: HttpRequest, schema: type[Schema], state: Any) -> None:
    """Raise PreconditionFailed unless If-Match, if any, names `state`, whose row the caller has locked.

    `schema` and `state` are those of the read at the same address, so that both have the same ETag.
    """
    header = request.headers.get(IF_MATCH)
    if header is None:
        return
    names = parse_etags(header)
    # RFC 9110: `*` matches any existing object.
    if names == ["*"]:
        return
    # It may have been read with a token that sees masked fields (api.withheld).
    for withheld in (False, True):
        # With the same schema and renderer as the read, since another order of keys would give another hash.
        data = schema.model_validate(state, context={WITHHELD: withheld}).model_dump()
        read = HttpResponse(JSONRenderer().render(request, data, response_status=200))
        if set_response_etag(read)["ETag"] in names:
            return
    raise PreconditionFailed(_("It has changed since you read it. Read it again, and repeat the change if it fits."))
