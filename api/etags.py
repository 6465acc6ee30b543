"""If-Match: a change happens to the object that was read, or not at all; reads have Django's own ETags."""

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
    """The object is not, or not any more, as the request's If-Match says."""


def require_match(request: HttpRequest, schema: type[Schema], found: Any) -> None:
    """Raise PreconditionFailed where If-Match names another state than `found`, whose row the caller has locked.

    `schema` and `found`: as the read at the same address answers, so that both have the same ETag.
    """
    given = request.headers.get(IF_MATCH)
    if given is None:
        return
    names = parse_etags(given)
    # RFC 9110: `*` matches whatever exists, and the caller has found the row.
    if names == ["*"]:
        return
    # It may have been read with a token that sees less than the one that changes it.
    for withheld in (False, True):
        # Through the same schema and renderer as the answer of a read: another order of keys would be another hash.
        data = schema.model_validate(found, context={WITHHELD: withheld}).model_dump()
        read = HttpResponse(JSONRenderer().render(request, data, response_status=200))
        if set_response_etag(read)["ETag"] in names:
            return
    raise PreconditionFailed(_("It has changed since you read it. Read it again, and repeat the change if it fits."))
