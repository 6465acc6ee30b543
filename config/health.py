"""GET /healthz: 200 when the database and Redis answer, else 503. For load balancers and `serve` itself."""

from django.core.cache import cache
from django.db import connection
from django.http import HttpRequest, JsonResponse

from annotation.permissions import PublicScope, action


@action("public")
def healthz(request: HttpRequest, scope: PublicScope) -> JsonResponse:
    """{"database": bool, "redis": bool}."""
    found = {"database": _database_answers(), "redis": _redis_answers()}
    return JsonResponse(found, status=200 if all(found.values()) else 503)


def _database_answers() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Exception:
        return False
    return True


def _redis_answers() -> bool:
    try:
        cache.get("healthz")
    except Exception:
        return False
    return True
