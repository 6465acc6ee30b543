"""Connections to PostgreSQL come from Django's pool, and one that the server ended is replaced before it is met."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.db.backends.postgresql.base import DatabaseWrapper

pytestmark = pytest.mark.django_db


@pytest.fixture
def pooled() -> Iterator[DatabaseWrapper]:
    options = {**connection.settings_dict["OPTIONS"], "pool": {"min_size": 1, "max_size": 1, "timeout": 10}}
    settings: dict[str, Any] = {**connection.settings_dict, "OPTIONS": options, "CONN_HEALTH_CHECKS": True}
    wrapper = DatabaseWrapper(settings, alias="default")
    yield wrapper
    wrapper.close()
    wrapper.close_pool()


def backend(wrapper: DatabaseWrapper) -> int:
    """The server's process behind the connection that this request got; it begins and ends as Django's do."""
    wrapper.close_if_unusable_or_obsolete()
    wrapper.ensure_connection()
    with wrapper.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        pid: int = cursor.fetchone()[0]
    wrapper.close()
    return pid


def test_a_living_connection_is_used_again_and_one_that_the_server_ended_is_replaced(pooled: DatabaseWrapper) -> None:
    first = backend(pooled)
    assert backend(pooled) == first
    with connection.cursor() as cursor:
        # As a restart of PostgreSQL; it returns when the process is gone.
        cursor.execute("SELECT pg_terminate_backend(%s, 60000)", [first])
    assert backend(pooled) != first


def test_a_transaction_that_was_left_open_is_not_taken_over(pooled: DatabaseWrapper) -> None:
    pooled.ensure_connection()
    pooled.connection.execute("CREATE TEMPORARY TABLE left_open (n int)")
    pooled.connection.execute("BEGIN")
    pooled.connection.execute("INSERT INTO left_open VALUES (1)")
    pooled.close()
    pooled.ensure_connection()
    assert pooled.connection.execute("SELECT count(*) FROM left_open").fetchone() == (0,)


def test_the_sites_processes_and_workers_ask_for_checked_connections(manage: Any) -> None:
    code = "from django.conf import settings; import json; d = settings.DATABASES['default'];"
    code += "print(json.dumps([d['CONN_HEALTH_CHECKS'], d['OPTIONS']['pool']]))"
    done = manage("shell", "--no-imports", "-c", code, environment={"QUORUM_DB_POOL": "3"})
    assert done.json == [True, {"min_size": 1, "max_size": 3, "timeout": 30.0}]
