"""GET /healthz (this process lives) and GET /readyz (it can serve pages), for load balancers, Docker and `serve`.

Both are answered before anything else looks at a request: a probe needs neither a name of ALLOWED_HOSTS nor TLS.
Anybody may ask, so what a driver says (hosts, users, names of databases) goes to the log alone.
"""

import logging
from collections.abc import Callable
from functools import cache

from django.db import connection
from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from redis.exceptions import RedisError

from config.startup import are_pending
from jobs import notifications

log = logging.getLogger(__name__)


class HealthMiddleware:
    """Answers the two addresses; every other request goes on."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response
        self.answers: dict[str, Callable[[], JsonResponse]] = {"/healthz": healthz, "/readyz": readyz}

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        answer = self.answers.get(request.path_info)
        if answer is None or request.method not in ("GET", "HEAD"):
            return self.get_response(request)
        response = answer()
        response.headers["Cache-Control"] = "no-store"
        return response


def healthz() -> JsonResponse:
    """Alive: nothing else is asked, because a restart of this process mends neither PostgreSQL nor Redis."""
    return JsonResponse({"alive": True})


def readyz() -> JsonResponse:
    """Return ready, or 503 with the reasons."""
    reasons = _unready_reasons()
    # Without Redis pages are read and written all the same: that is `degraded`, and keeps nobody out.
    document = {"ready": not reasons, "reasons": reasons, "degraded": _degraded_reasons()}
    return JsonResponse(document, status=503 if reasons else 200)


def _unready_reasons() -> list[str]:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        _is_migrated()
    except NotMigratedError:
        return ["The database has pending migrations: run `manage.py migrate`."]
    except Exception as error:
        connection.close()
        log.warning("PostgreSQL does not answer: %s", _one_line(error))
        return ["PostgreSQL does not answer"]
    return []


def _degraded_reasons() -> list[str]:
    try:
        notifications.redis_client().ping()
    except (RedisError, OSError) as error:
        log.warning("Redis does not answer: %s", _one_line(error))
        return ["Redis does not answer: workers and judges' calls wait"]
    return []


class NotMigratedError(Exception):
    """The database lacks migrations of this version."""


@cache
def _is_migrated() -> None:
    """Raise unless all migrations are applied; once they are, they are not looked up again by this process."""
    # An exception is not cached, so this is asked again until all are applied.
    if are_pending():
        raise NotMigratedError


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
