"""PostgreSQL and Redis: where they are by URL, or our own under VAR, started by a keeper.

Settings ask for addresses, which are known before anything runs. Whoever needs the services calls `ensure_services`.
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
