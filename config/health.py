"""GET /healthz (the process is alive) and GET /readyz (it can serve pages), for load balancers, Docker and `serve`.

A probe needs neither a name in ALLOWED_HOSTS nor TLS. The addresses are public, so drivers' messages are only logged.
"""

import logging
import os
from pathlib import Path

from django.conf import settings
from django.db import connection
from django.http import HttpRequest, JsonResponse
from django.utils.deprecation import MiddlewareMixin
from redis.exceptions import RedisError

from config.operating import web_metrics
from config.startup import read_schema
from jobs import notifications

log = logging.getLogger(__name__)
# `serve` creates a file of this name, in the folder that the web processes share, when it is about to end.
STOPPING_FILE = "stopping"
MIN_FREE_BYTES = 16 << 20  # PostgreSQL stops if it cannot create the next segment of its write-ahead log.
_is_migrated = False


class HealthMiddleware(MiddlewareMixin):
    """Answers the two addresses before all other middleware."""

    def process_request(self, request: HttpRequest) -> JsonResponse | None:
        if request.path_info not in ("/healthz", "/readyz") or request.method not in ("GET", "HEAD"):
            return None
        # /healthz checks no service: restarting this process would not help if PostgreSQL or Redis were unavailable.
        if request.path_info == "/healthz":
            response = JsonResponse({"alive": True})
        else:
            # Answer that this process is ready, or 503 with the reasons.
            if is_shutting_down():
                reasons = ["This node is stopping."]
            else:
                reasons = _unready_reasons()
                # On a full disk, pages could be read, but every write would fail.
                try:
                    disk = os.statvfs(settings.VAR)
                except OSError as error:
                    log.warning("VAR cannot be read: %s", _one_line(error))
                    reasons.append("The folder VAR cannot be read")
                else:
                    # File systems without a fixed number of files report 0 for both.
                    if disk.f_bavail * disk.f_frsize < MIN_FREE_BYTES or (disk.f_files and not disk.f_favail):
                        log.warning("The disk of %s is full", settings.VAR)
                        reasons.append("The disk is full")
            # Pages work without Redis: the node is then degraded, but ready.
            degraded = []
            try:
                notifications.redis_client().ping()
            except (RedisError, OSError) as error:
                log.warning("Redis does not answer: %s", _one_line(error))
                degraded = ["Redis is not responding: workers and judge calls wait"]
            document = {"ready": not reasons, "reasons": reasons, "degraded": degraded}
            response = JsonResponse(document, status=503 if reasons else 200)
        response.headers["Cache-Control"] = "no-store"
        return response


def is_shutting_down() -> bool:
    """Return whether this node asks proxies for no more requests; it still answers those that arrive."""
    folder = os.environ.get(web_metrics.FOLDER, "")
    return bool(folder) and (Path(folder) / STOPPING_FILE).exists()


def _unready_reasons() -> list[str]:
    global _is_migrated
    try:
        # PostgreSQL is asked at each probe, because it may have stopped since the last one.
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        # Once the tables fit this code, this process does not check them again.
        schema = None if _is_migrated else read_schema()
    except Exception as error:
        connection.close()
        log.warning("PostgreSQL does not answer: %s", _one_line(error))
        return ["PostgreSQL is not responding"]
    if schema is not None and schema.unknown:
        return ["The database is of a newer version than this code."]
    if schema is not None and schema.is_pending:
        return ["The database has pending migrations: run manage.py migrate."]
    _is_migrated = True
    return []


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
