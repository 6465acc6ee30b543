"""ETags: every read answers with one and knows If-None-Match; every change knows If-Match.

An ETag is a hash of what the read answers, so that there is one for every list and object without a column for it.
"""

from hashlib import sha256
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.cache import get_conditional_response
from django.utils.http import parse_etags
from django.utils.translation import gettext as _
from ninja import Schema
from ninja.renderers import JSONRenderer

from api.withheld import WITHHELD

IF_MATCH, IF_NONE_MATCH = "If-Match", "If-None-Match"


class PreconditionFailed(Exception):
    """The object is not, or not any more, as the request's If-Match says."""


def etag_of(content: bytes) -> str:
    """Return the ETag of an answer."""
    # 128 bits tell all states apart; the other half would only make headers longer.
    return f'"{sha256(content).hexdigest()[:32]}"'


def tag_answer(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Give a read its ETag; 304 without content where the reader has it already. Raises PreconditionFailed.

    A change answers with the new state and its ETag, as a read after it would.
    """
    if request.method not in ("GET", "PATCH") or response.status_code != 200:
        return response
    etag = etag_of(response.content)
    response["ETag"] = etag
    if request.method == "PATCH":
        return response
    # Kept by the reader alone, and asked about each time.
    response["Cache-Control"] = "private, no-cache"
    found = get_conditional_response(request, etag=etag, response=response)
    # Django would answer 412 with a page; the API answers with a problem.
    if found is None or found.status_code == 412:
        raise precondition_failed()
    return found if isinstance(found, HttpResponse) else response


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
        if etag_of(JSONRenderer().render(request, data, response_status=200).encode()) in names:
            return
    raise precondition_failed()


def precondition_failed() -> PreconditionFailed:
    """Return the error that a changed object is refused with."""
    return PreconditionFailed(_("It has changed since you read it. Read it again, and repeat the change if it fits."))
