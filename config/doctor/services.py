"""PostgreSQL and Redis: do they answer, which are they, schema, do clocks agree?"""

import io
import time
from collections.abc import Iterator
from contextlib import redirect_stderr
from typing import Any

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from django.db.migrations.executor import MigrationExecutor
from redis.exceptions import RedisError

from config.checks import COMMANDS, count_connections
from config.doctor.findings import Finding, first_line, ok, problem, warn
from embedded import are_embedded, ensure_services
from embedded.startup import unsupported_reason
from jobs.notifications import redis_client

OFF_S, LATE_S = 5.0, 1.0  # Seconds that a clock may differ by: more is a problem, a warning.
LOGS = "look into QUORUM_VAR/logs"


def check_postgresql() -> Iterator[Finding]:
    """Check that PostgreSQL answers, is of a supported version, and lets in as many as the settings may send."""
    remedy = LOGS if are_embedded() else "start it, and check DATABASE_URL"
    try:
        _start_embedded()
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT current_setting('server_version_num')::int, current_setting('max_connections')::int, "
                "(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')"
            )
            version, most, used = cursor.fetchone()
    except (DatabaseError, InterfaceError, SystemExit, OSError) as error:
        connection.close()
        yield problem("postgresql", f"it does not answer ({first_line(error)})", remedy)
        return
    if reason := unsupported_reason(version):
        yield problem("postgresql", reason, "move to a supported version (docker/README.md, Upgrade)")
        return
    # By the settings and not by what is open now: a quiet hour would hide that there are too few.
    wanted = count_connections(settings.JUDGE_WORKERS)
    says = f"version {version // 10_000}.{version % 10_000}, {used} of {most} connections in use"
    if wanted > most:
        remedy = "raise max_connections, or lower QUORUM_WEB_PROCESSES, QUORUM_WEB_THREADS or QUORUM_JUDGE_WORKERS"
        yield problem("postgresql", f"{says}; the settings may open {wanted}", remedy)
    elif used > most - COMMANDS:
        yield warn("postgresql", says, "end what is idle, or raise max_connections")
    else:
        yield ok("postgresql", says)


def _start_embedded() -> None:
    """Start this instance's services, as every command does; errors name the platform's."""
    told = io.StringIO()
    try:
        with redirect_stderr(told):
            ensure_services(settings.VAR)
    except SystemExit:
        raise SystemExit(told.getvalue()) from None


def check_migrations() -> Iterator[Finding]:
    """Check that the tables are those of this code, neither older nor newer."""
    executor = MigrationExecutor(connection)
    loader: Any = executor.loader
    pending = executor.migration_plan(loader.graph.leaf_nodes())
    known = set(loader.disk_migrations) | set(loader.replacements)
    ours = {app for app, _name in known}
    newer = sorted(
        f"{app}.{name}" for app, name in loader.applied_migrations if app in ours and (app, name) not in known
    )
    if newer:
        yield problem(
            "migrations",
            f"this code does not know {len(newer)} migrations of the database, {newer[-1]} among them: it is older",
            "install the version that the database was migrated by, or restore a backup of before",
        )
    if pending:
        yield problem("migrations", f"{len(pending)} are pending", "back up, then run `manage.py migrate`")
    if not newer and not pending:
        yield ok("migrations", "all are applied, and none is of a newer version")


def check_redis() -> Iterator[Finding]:
    """Check that Redis answers, and forgets nothing."""
    try:
        redis_client().ping()
        info: dict[str, Any] = redis_client().info()
    except (RedisError, OSError) as error:
        remedy = LOGS if are_embedded() else "start it, and check REDIS_URL; until then campaigns and jobs wait"
        yield problem("redis", f"it does not answer ({first_line(error)})", remedy)
        return
    says = f"version {info.get('redis_version')}, {int(info.get('used_memory', 0)) / 1e6:.0f} MB"
    policy = info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        yield problem(
            "redis",
            f"{says}; it throws keys away when memory is short ({policy}), messages and limits among them",
            "set maxmemory-policy noeviction",
        )
    else:
        yield ok("redis", says)


def check_clock() -> Iterator[Finding]:
    """Check that this machine's clock is that of PostgreSQL and of Redis."""
    off = {"PostgreSQL": _database_offset(), "Redis": _redis_offset()}
    name = max(off, key=lambda one: abs(off[one] or 0.0))
    seconds = off[name] or 0.0
    says = f"{name}'s clock is {abs(seconds):.1f} s {'ahead of' if seconds > 0 else 'behind'} this machine's"
    if abs(seconds) > OFF_S:
        yield problem("clock", says, "let NTP set the clocks of all machines")
    elif abs(seconds) > LATE_S:
        yield warn("clock", says, "let NTP set the clocks of all machines")
    else:
        yield ok("clock", "this machine, PostgreSQL and Redis agree to the second")


def _database_offset() -> float:
    began = time.time()
    with connection.cursor() as cursor:
        cursor.execute("SELECT extract(epoch FROM clock_timestamp())::float8")
        (found,) = cursor.fetchone()
    return float(found) - (began + time.time()) / 2


def _redis_offset() -> float | None:
    began = time.time()
    try:
        seconds, micro = redis_client().time()
    except (RedisError, OSError):
        return None
    return float(seconds + micro / 1e6) - (began + time.time()) / 2
