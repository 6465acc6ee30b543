"""Log lines of requests: each request has an id, which is also in its response and in the lines of its tasks.

django-structlog does most of it. This module adds ids from outside, addresses without secrets, and the duration.
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
# An id from outside is put into logs and headers, so it must be short and must not contain line breaks.
WELL_FORMED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,99}")


class RequestLogMiddleware(RequestMiddleware):
    """Binds the request's id, puts it into the response, and logs the request when it is answered."""

    def prepare(self, request: HttpRequest) -> None:
        # Nothing is logged yet, because the secrets in the address are only known once it is resolved.
        request_id = request.headers.get(HEADER, "")
        request.request_id = request_id if WELL_FORMED.fullmatch(request_id) else uuid4().hex  # type: ignore[attr-defined]
        request.began = perf_counter()  # type: ignore[attr-defined]
        bind_contextvars(request_id=request.request_id)  # type: ignore[attr-defined]
        current_request.set(request)

    def handle_response(self, request: HttpRequest, response: HttpResponse) -> None:
        response.headers[HEADER] = request.request_id  # type: ignore[attr-defined]
        super().handle_response(request, response)
        current_request.set(None)


@receiver([signals.bind_extra_request_finished_metadata, signals.bind_extra_request_failed_metadata])
def describe_request(request: Any, log_kwargs: dict[str, Any], **_: Any) -> None:
    """Add the method, the address without secrets, the status and the duration to a request's line."""
    del log_kwargs["request"]  # It contains the query.
    milliseconds = round((perf_counter() - request.began) * 1000, 1)
    status = log_kwargs.pop("code")
    log_kwargs.update(method=request.method, path=masked_path(request), status=status, milliseconds=milliseconds)
