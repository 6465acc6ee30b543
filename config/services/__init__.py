"""Where PostgreSQL and Redis are: by URL, or our own under VAR, started by a keeper (MECHANICS M1).

Settings ask for addresses, which are known before anything runs. Whoever needs the services calls `ensure`.
"""

from config.services.addresses import celery_url, database, embedded, keep_private, redis_url, secret_key
from config.services.startup import ensure, ensure_for_command, start_keeper

__all__ = [
    "celery_url",
    "database",
    "embedded",
    "ensure",
    "ensure_for_command",
    "keep_private",
    "redis_url",
    "secret_key",
    "start_keeper",
]
