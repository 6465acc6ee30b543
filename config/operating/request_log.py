"""Each request has an id, which its log lines, its answer and the tasks that it asks for carry, and its own line.

django-structlog does so. Here stands what it leaves to its users: which ids are taken from outside,
addresses without secrets, and how long the answer took.
"""

import re
from time import perf_counter
from typing import Any
from uuid import uuid4

from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse
from django_structlog import signals
from django_structlog.middlewares import RequestMiddleware
from structlog.contextvars import bind_contextvars

from config.operating.logs import current_request, masked_path

HEADER = "X-Request-ID"
# An id from outside goes into logs and headers: it must be short, and hold no line ends.
WELL_FORMED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,99}")


class RequestLogMiddleware(RequestMiddleware):
    """Binds the request's id, answers with it, and logs the request once it is answered."""

    def prepare(self, request: HttpRequest) -> None:
        # Nothing is logged yet: the line would need a look at all routes to know what is secret in the address.
        given = request.headers.get(HEADER, "")
        request.request_id = given if WELL_FORMED.fullmatch(given) else uuid4().hex  # type: ignore[attr-defined]
        request.began = perf_counter()  # type: ignore[attr-defined]
        bind_contextvars(request_id=request.request_id)  # type: ignore[attr-defined]
        current_request.set(request)

    def handle_response(self, request: HttpRequest, response: HttpResponse) -> None:
        response.headers[HEADER] = request.request_id  # type: ignore[attr-defined]
        super().handle_response(request, response)
        current_request.set(None)


@receiver([signals.bind_extra_request_finished_metadata, signals.bind_extra_request_failed_metadata])
def describe_request(request: Any, log_kwargs: dict[str, Any], **_: Any) -> None:
    """Say in a request's line what was asked, without secrets, and the time to its answer."""
    del log_kwargs["request"]  # It has the query.
    milliseconds = round((perf_counter() - request.began) * 1000, 1)
    status = log_kwargs.pop("code")
    log_kwargs.update(method=request.method, path=masked_path(request), status=status, milliseconds=milliseconds)
