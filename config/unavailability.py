"""Responses and log lines while PostgreSQL, Redis or the store is unavailable, or a disk is full.

If a service is unavailable, the user gets a page with status 503 and a Retry-After, and the log one line.
If the disk is full, the page has status 507 and no Retry-After, because waiting does not free space.
"""

import logging
import sys
from collections.abc import Callable

import kombu.exceptions
import psycopg
from django.db import Error, InterfaceError, OperationalError, connection
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.template.loader import get_template
from django.utils.deprecation import MiddlewareMixin
from django.views import defaults
from redis.exceptions import RedisError

from jobs import notifications
from store.disk import is_full
from store.objects import StoreUnavailable

RETRY_AFTER_SECONDS = 5
# SQLSTATEs: the server is shutting down, has crashed, is starting up, or has no free connection.
UNAVAILABLE_STATES = {"57P01", "57P02", "57P03", "53300"}
CONNECTION_ERROR_CLASS = "08"  # The first two characters of the SQLSTATEs of connection errors.


class UnavailabilityMiddleware(MiddlewareMixin):
    """Replaces the error page of a view that failed because a service is unavailable or the disk is full."""

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        return explain_error(error)


def server_error(request: HttpRequest) -> HttpResponseBase:
    """Respond to an error that no middleware handled, such as one raised while a session is stored (`handler500`)."""
    error = sys.exc_info()[1]
    page = explain_error(error) if error is not None else None
    return page or defaults.server_error(request)


def explain_error(error: BaseException) -> HttpResponse | None:
    """Return the page for a full disk or an unavailable service; None for any other error."""
    if is_full(error):
        return HttpResponse(get_template("507.html").render(), status=507)
    if is_unavailability(error):
        return unavailable_page()
    return None


def unavailable_page() -> HttpResponse:
    """Return the page with status 503, and close the database connection so that the next request opens a new one."""
    connection.close()
    headers = {"Retry-After": str(RETRY_AFTER_SECONDS)}
    return HttpResponse(get_template("503.html").render(), status=503, headers=headers)


def is_unavailability(error: BaseException) -> bool:
    """Return whether an error means that PostgreSQL, Redis or the store is unavailable.

    Errors in a statement, such as a deadlock or bad syntax, do not.
    """
    if isinstance(error, StoreUnavailable):
        return True
    # Django wraps the driver's errors, which alone have the SQLSTATE.
    cause = error.__cause__ if isinstance(error, Error) and error.__cause__ else error
    if isinstance(cause, InterfaceError | psycopg.InterfaceError | RedisError | kombu.exceptions.OperationalError):
        return True
    if not isinstance(cause, OperationalError | psycopg.OperationalError):
        return False
    state: str | None = getattr(cause, "sqlstate", None)
    # An error without a SQLSTATE comes from the connection and not from the server.
    return state is None or state in UNAVAILABLE_STATES or state.startswith(CONNECTION_ERROR_CLASS)


class TracebackFilter(logging.Filter):
    """Log filter that replaces the traceback of an unavailable service or a full disk by the error's message."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Shorten the record where it applies; return True, because every record is logged."""
        error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
        if error is not None and (is_full(error) or is_unavailability(error)):
            error_line = " ".join(str(error).split())
            record.msg = f"{record.getMessage()}: {error_line}"
            record.args = None  # They are in the message already.
            record.exc_info = None
            record.exc_text = None
        return True


def services_context(request: HttpRequest) -> dict[str, Callable[[], bool]]:
    """Return `redis_is_away` for templates: a function, so that only a page that uses it waits for Redis."""
    return {"redis_is_away": notifications.is_away}
