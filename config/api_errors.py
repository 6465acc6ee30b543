"""Whatever refuses or fails below the API's address answers with a problem document, and not with a page.

Operations refuse with problems themselves (api.problems). What fails outside them, as Django's own
refusals, a method that an address does not take, an error of ours, PostgreSQL away or a full disk,
comes as a page, and is turned here.
"""

from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.deprecation import MiddlewareMixin
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from api.problems import JSON, refuse

SENTENCES = {
    400: gettext_noop("The request is not valid."),
    403: gettext_noop("This request is not allowed."),
    404: gettext_noop("Not found."),
    500: gettext_noop("An error occurred and was logged. Look whether the request was done before you send it again."),
    503: gettext_noop("The database, the message service or the file store cannot be reached. Try again in a moment."),
    507: gettext_noop("The server's disk is full, so nothing was stored. Try again once there is room."),
}


class ApiErrorMiddleware(MiddlewareMixin):
    """Gives an error below /api/ the form of a problem; its status and headers stay."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if response.status_code < 400 or not request.path_info.startswith("/api/"):
            return response
        if not isinstance(response, HttpResponse) or response.headers.get("Content-Type", "").startswith(JSON):
            return response
        problem = refuse(response.status_code, _explain(request, response))
        response.content = problem.content
        response.headers["Content-Type"] = JSON
        # Of the page that it was.
        response.headers["Content-Length"] = str(len(problem.content))
        return response


def _explain(request: HttpRequest, response: HttpResponse) -> str:
    if response.status_code == 405:
        methods = sorted(response.headers.get("Allow", "").split(", "))
        words = {"method": request.method, "methods": ", ".join(methods)}
        return _("This address takes no %(method)s; it takes %(methods)s.") % words
    sentence = SENTENCES.get(response.status_code)
    return _(sentence) if sentence else HTTPStatus(response.status_code).phrase
