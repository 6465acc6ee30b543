"""Problem documents instead of HTML pages for all errors below the API's address.

Operations answer with problems themselves (api.problems). Errors outside them (Django's own refusals, methods that an
address does not support, internal errors, an unavailable PostgreSQL, a full disk) are pages, and are converted here.
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
    """Converts an error page below /api/ into a problem with the same status and headers."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if response.status_code < 400 or not request.path_info.startswith("/api/"):
            return response
        if not isinstance(response, HttpResponse) or response.headers.get("Content-Type", "").startswith(JSON):
            return response
        if response.status_code == 405:
            methods = sorted(response.headers.get("Allow", "").split(", "))
            words = {"method": request.method, "methods": ", ".join(methods)}
            sentence = _("This address takes no %(method)s; it takes %(methods)s.") % words
        elif response.status_code in SENTENCES:
            sentence = _(SENTENCES[response.status_code])
        else:
            sentence = HTTPStatus(response.status_code).phrase
        problem = refuse(response.status_code, sentence)
        response.content = problem.content
        response.headers["Content-Type"] = JSON
        response.headers["Content-Length"] = str(len(problem.content))  # Replaces the page's length.
        return response
