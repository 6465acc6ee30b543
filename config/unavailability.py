"""What users and the log see while PostgreSQL, Redis or the file store is unavailable, or a disk is full.

If a service is unavailable, the user gets a page with status 503 and the header Retry-After. If a disk is full, the
page has status 507 and no such header, because waiting does not free space. In both cases the log gets a single line
instead of a traceback. Every template can read whether Redis is unavailable.
"""

import logging
import sys
from collections.abc import Callable

import django.db
import kombu.exceptions
import psycopg
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.template.loader import get_template
from django.utils.deprecation import MiddlewareMixin
from django.views import defaults
from redis.exceptions import RedisError

from jobs import notifications
from store.disk import means_full_disk
from store.objects import StoreUnavailable

RETRY_AFTER_SECONDS = 5
# SQLSTATEs of a server that is shutting down, that has crashed, that is starting up, or that has no free connection.
UNAVAILABLE_SQLSTATES = {"57P01", "57P02", "57P03", "53300"}
CONNECTION_ERROR_PREFIX = "08"  # The SQLSTATE of every connection error begins with these characters.


class UnavailabilityMiddleware(MiddlewareMixin):
    """Responds to the errors of views that mean an unavailable service or a full disk."""

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        return respond_to_error(error)


def server_error(request: HttpRequest) -> HttpResponseBase:
    """Respond to an error that no middleware handled, such as one raised while a session is stored.

    This is Django's `handler500`. The error is tested here again, because UnavailabilityMiddleware gets only those of
    views.
    """
    error = sys.exc_info()[1]
    response = respond_to_error(error) if error is not None else None
    return response or defaults.server_error(request)


def respond_to_error(error: BaseException) -> HttpResponse | None:
    """Return the response for a full disk or an unavailable service, and None for any other error.

    If a service is unavailable, this also closes the database connection, so that the next request opens a new one.
    """
    if means_full_disk(error):
        return HttpResponse(get_template("507.html").render(), status=507)
    if means_unavailable_service(error):
        django.db.connection.close()
        return build_unavailable_response()
    return None


def build_unavailable_response() -> HttpResponse:
    """Return the page that asks the user to try again soon, with status 503."""
    headers = {"Retry-After": str(RETRY_AFTER_SECONDS)}
    return HttpResponse(get_template("503.html").render(), status=503, headers=headers)


def means_unavailable_service(error: BaseException) -> bool:
    """Return whether an error means that PostgreSQL, Redis or the file store is unavailable.

    An error in a statement, such as a deadlock or a syntax error, does not mean this.
    """
    if isinstance(error, StoreUnavailable):
        return True
    # Django wraps the errors of the database driver. Only the driver's own error has a SQLSTATE.
    cause = error.__cause__ if isinstance(error, django.db.Error) and error.__cause__ else error
    if isinstance(
        cause, django.db.InterfaceError | psycopg.InterfaceError | RedisError | kombu.exceptions.OperationalError
    ):
        return True
    if not isinstance(cause, django.db.OperationalError | psycopg.OperationalError):
        return False
    sqlstate: str | None = getattr(cause, "sqlstate", None)
    # An error without a SQLSTATE does not come from the server, so the server could not be reached.
    return sqlstate is None or sqlstate in UNAVAILABLE_SQLSTATES or sqlstate.startswith(CONNECTION_ERROR_PREFIX)


class TracebackFilter(logging.Filter):
    """Log filter that replaces the traceback of an unavailable service or a full disk by the message of the error."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Shorten the record if its error is such an error. Return True, because every record is logged."""
        error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
        if error is not None and (means_full_disk(error) or means_unavailable_service(error)):
            error_message = " ".join(str(error).split())
            record.msg = f"{record.getMessage()}: {error_message}"
            record.args = None  # `getMessage` has inserted them.
            record.exc_info = None
            record.exc_text = None
        return True


def redis_context(request: HttpRequest) -> dict[str, Callable[[], bool]]:
    """Return the template variable `redis_is_unavailable`, which every page may use.

    It is a function that Django calls when a template reads it, so that other pages do not wait for Redis.
    """
    return {"redis_is_unavailable": notifications.is_redis_unavailable}
