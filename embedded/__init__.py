"""PostgreSQL and Redis: either external ones by URL, or embedded ones in VAR, which a keeper process starts.

Settings only need their addresses, which are known in advance. Processes that need the services call `ensure_services`.
"""

from embedded.addresses import (
    are_embedded,
    celery_url,
    check_redis_url,
    database_settings,
    keep_private,
    redis_url,
    secret_key,
)
from embedded.startup import ensure_services, start_keeper

__all__ = [
    "are_embedded",
    "celery_url",
    "check_redis_url",
    "database_settings",
    "ensure_services",
    "keep_private",
    "redis_url",
    "secret_key",
    "start_keeper",
]
