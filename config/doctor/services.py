"""Checks of PostgreSQL and Redis: whether they answer, their versions, the tables, the clocks."""

import contextlib
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
from config.startup import unknown_migrations
from embedded import are_embedded, ensure_services
from embedded.startup import unsupported_reason
from jobs.notifications import redis_client

PROBLEM_S, WARNING_S = 5.0, 1.0  # Differences of clocks above which there is a problem, or a warning.
LOGS = "look into QUORUM_VAR/logs"


def check_postgresql() -> Iterator[Finding]:
    """Check that PostgreSQL answers, has a supported version, and allows as many connections as the settings need."""
    remedy = LOGS if are_embedded() else "start it, and check DATABASE_URL"
    try:
        # Embedded services are started, as by every command; the error is what that prints.
        output = io.StringIO()
        try:
            with redirect_stderr(output):
                ensure_services(settings.VAR)
        except SystemExit:
            raise SystemExit(output.getvalue()) from None
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT current_setting('server_version_num')::int, current_setting('max_connections')::int, "
                "(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')"
            )
            version, limit, used = cursor.fetchone()
    except (DatabaseError, InterfaceError, SystemExit, OSError) as error:
        connection.close()
        yield problem("postgresql", f"it does not answer ({first_line(error)})", remedy)
        return
    if reason := unsupported_reason(version):
        yield problem("postgresql", reason, "move to a supported version (docker/README.md, Upgrade)")
        return
    # By the settings and not by the open connections, since a quiet hour would hide that there are too few.
    possible = count_connections(settings.JUDGE_WORKERS)
    says = f"version {version // 10_000}.{version % 10_000}, {used} of {limit} connections in use"
    if possible > limit:
        remedy = "raise max_connections, or lower QUORUM_WEB_PROCESSES, QUORUM_WEB_THREADS or QUORUM_JUDGE_WORKERS"
        yield problem("postgresql", f"{says}; the settings may open {possible}", remedy)
    elif used > limit - COMMANDS:
        yield warn("postgresql", says, "end what is idle, or raise max_connections")
    else:
        yield ok("postgresql", says)


def check_migrations() -> Iterator[Finding]:
    """Check that the tables fit this code, and are neither older nor newer."""
    executor = MigrationExecutor(connection)
    loader: Any = executor.loader
    pending = executor.migration_plan(loader.graph.leaf_nodes())
    our_apps = {app for app, _name in loader.disk_migrations}
    newer = [f"{app}.{name}" for app, name in unknown_migrations(loader, loader.applied_migrations) if app in our_apps]
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
    """Check that Redis answers, and never evicts keys."""
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
    """Check that the clocks of this machine, PostgreSQL and Redis agree."""
    # The offset in seconds, relative to the middle of each request.
    began = time.time()
    with connection.cursor() as cursor:
        cursor.execute("SELECT extract(epoch FROM clock_timestamp())::float8")
        (database_time,) = cursor.fetchone()
    offsets = {"PostgreSQL": float(database_time) - (began + time.time()) / 2}
    with contextlib.suppress(RedisError, OSError):
        began = time.time()
        seconds, microseconds = redis_client().time()
        offsets["Redis"] = float(seconds + microseconds / 1e6) - (began + time.time()) / 2
    name = max(offsets, key=lambda service: abs(offsets[service]))
    offset = offsets[name]
    says = f"{name}'s clock is {abs(offset):.1f} s {'ahead of' if offset > 0 else 'behind'} this machine's"
    if abs(offset) > PROBLEM_S:
        yield problem("clock", says, "let NTP set the clocks of all machines")
    elif abs(offset) > WARNING_S:
        yield warn("clock", says, "let NTP set the clocks of all machines")
    else:
        yield ok("clock", "this machine, PostgreSQL and Redis agree to the second")
