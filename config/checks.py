"""Checks of the settings, which `manage.py check` runs, and also `serve` and `demo` before they start."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from store.files import open_store
from store.objects import StoreUnavailable

# Tag of the checks that depend on an instance's settings: `serve` and `demo` run them before they start.
SETTINGS = "instance-settings"
COMMANDS = 10  # Connections for commands, the superuser's reserve and people who use psql.


def count_connections(judge_workers: int) -> int:
    """Return how many PostgreSQL connections an instance with so many judge workers opens at most."""
    web = settings.WEB_PROCESSES * settings.WEB_THREADS
    return int(web + judge_workers * settings.CONNECTIONS_PER_JUDGE_WORKER + COMMANDS)


@register(SETTINGS)
def usable_store(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Return an error if QUORUM_STORE names no store that can be opened. Nothing is sent to the store."""
    try:
        if settings.STORE:
            open_store()
    except StoreUnavailable as error:
        return [Error(str(error), hint="docs/operators.md says what QUORUM_STORE may be.", id="quorum.E002")]
    return []


@register(SETTINGS)
def enough_connections(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Return an error if all connections together exceed PostgreSQL's max_connections."""
    connections = count_connections(settings.JUDGE_WORKERS)
    if connections <= settings.MAX_CONNECTIONS:
        return []
    return [
        Error(
            f"The settings may open {connections} database connections, "
            f"and PostgreSQL allows {settings.MAX_CONNECTIONS}.",
            hint="Lower QUORUM_WEB_PROCESSES, QUORUM_WEB_THREADS or QUORUM_JUDGE_WORKERS, or raise max_connections "
            "and QUORUM_MAX_CONNECTIONS.",
            id="quorum.E001",
        )
    ]
