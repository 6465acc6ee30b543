"""Unavailable services: a page with status 503 and one line in the log if PostgreSQL, Redis or the store is away.

A full disk gives a page with status 507, without a time to come back: it would be just as full.
"""

import logging
import sys
from typing import Any

import kombu.exceptions
import psycopg
from django.db import DatabaseError, InterfaceError, OperationalError, connection
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.template.loader import get_template
from django.utils.deprecation import MiddlewareMixin
from django.views import defaults
from redis.exceptions import RedisError

from jobs import notifications
from store.disk import is_full
from store.objects import StoreUnavailable

COME_BACK_S = 5
# PostgreSQL shuts down, crashed, starts, or has no connection left. Errors without a code come from the connection.
ENDED = {"57P01", "57P02", "57P03", "53300"}


class AwayMiddleware(MiddlewareMixin):
    """Answers for a view that failed because a service is away or the disk is full."""

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        return explain_error(error)


def server_error(request: HttpRequest) -> HttpResponseBase:
    """Answer an error, including one outside views, as when a session is stored."""
    error = sys.exc_info()[1]
    return (explain_error(error) if error is not None else None) or defaults.server_error(request)


def explain_error(error: BaseException) -> HttpResponse | None:
    """Return the page for a full disk or an unavailable service; None for any other error."""
    if is_full(error):
        return HttpResponse(get_template("507.html").render(), status=507)
    return unavailable_page() if is_away(error) else None


def unavailable_page() -> HttpResponse:
    """Return the page with status 503, and make the next request open a new database connection."""
    connection.close()
    return HttpResponse(get_template("503.html").render(), status=503, headers={"Retry-After": str(COME_BACK_S)})


def is_away(error: BaseException) -> bool:
    """Return whether an error means that PostgreSQL, Redis or the store is away, and not that a statement is wrong."""
    if isinstance(error, StoreUnavailable):
        return True
    cause = error.__cause__ if isinstance(error, DatabaseError | InterfaceError) and error.__cause__ else error
    if isinstance(cause, InterfaceError | psycopg.InterfaceError | RedisError | kombu.exceptions.OperationalError):
        return True
    if not isinstance(cause, OperationalError | psycopg.OperationalError):
        return False
    code = getattr(cause, "sqlstate", None)
    # Class 08 of PostgreSQL's error codes contains connection errors.
    return code is None or code in ENDED or code.startswith("08")


class InOneLine(logging.Filter):
    """Log filter that shortens records about an unavailable service or a full disk to one line."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
        if error is not None and (is_full(error) or is_away(error)):
            record.msg = f"{record.getMessage()}: {' '.join(str(error).split())}"
            record.args, record.exc_info, record.exc_text = None, None, None
        return True


def services_context(request: HttpRequest) -> dict[str, Any]:
    """Return the function that tells pages whether Redis is away."""
    return {"redis_is_away": notifications.is_away}
