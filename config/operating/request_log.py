"""Each request has an id, which its log lines, its answer and the tasks that it asks for carry, and its own line."""

import logging
import re
from collections.abc import Callable
from time import perf_counter
from uuid import uuid4

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from structlog.contextvars import bound_contextvars

from config.operating import web_metrics
from config.operating.logs import current_request, masked_path

HEADER = "X-Request-ID"
# An id from outside goes into logs and headers: it must be short, and hold no line ends.
WELL_FORMED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,99}")

logger = logging.getLogger(__name__)


class RequestLogMiddleware:
    """Binds the request's id, answers with it, and logs and counts the request once it is answered."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        request_id = choose_request_id(request.headers.get(HEADER, ""))
        request.request_id = request_id  # type: ignore[attr-defined]
        began = perf_counter()
        with bound_contextvars(request_id=request_id), current_request(request):
            response = self.get_response(request)
            seconds = perf_counter() - began
            response.headers[HEADER] = request_id
            web_metrics.count_request(request, response.status_code, seconds)
            logger.info(
                "request",
                extra={
                    "method": request.method,
                    "path": masked_path(request),
                    "status": response.status_code,
                    "milliseconds": round(seconds * 1000, 1),
                },
            )
        return response


def choose_request_id(given: str) -> str:
    """Return the id that a proxy or client gave, where it is one; else a new one."""
    return given if WELL_FORMED.fullmatch(given) else uuid4().hex
