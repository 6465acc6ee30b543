"""Connections that the server ended while they were idle are replaced: the pool's (workers), and a thread's (web)."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.db import connection

from config.postgresql.base import FIRST_PLANS, DatabaseWrapper, alive

pytestmark = pytest.mark.django_db


@pytest.fixture
def pooled() -> Iterator[DatabaseWrapper]:
    options = {**connection.settings_dict["OPTIONS"], "pool": {"min_size": 1, "max_size": 1, "timeout": 10}}
    wrapper = DatabaseWrapper({**connection.settings_dict, "OPTIONS": options}, alias="default")
    yield wrapper
    wrapper.close()
    wrapper.close_pool()


@pytest.fixture
def kept() -> Iterator[DatabaseWrapper]:
    wrapper = DatabaseWrapper(
        {**connection.settings_dict, "CONN_MAX_AGE": None, "CONN_HEALTH_CHECKS": True}, alias="default"
    )
    yield wrapper
    wrapper.close()


@pytest.fixture(params=["pooled", "kept"])
def wrapper(request: pytest.FixtureRequest) -> DatabaseWrapper:
    found: DatabaseWrapper = request.getfixturevalue(request.param)
    return found


def backend(wrapper: DatabaseWrapper) -> int:
    """The server's process behind the connection that this request got; it begins and ends as Django's do."""
    wrapper.close_if_unusable_or_obsolete()
    wrapper.ensure_connection()
    with wrapper.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        pid: int = cursor.fetchone()[0]
    wrapper.close_if_unusable_or_obsolete()
    return pid


def end(pid: int) -> None:
    """What a restart of PostgreSQL does to a connection; returns when it is gone."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 60000)", [pid])


def test_a_living_connection_is_used_again(wrapper: DatabaseWrapper) -> None:
    assert backend(wrapper) == backend(wrapper)


def test_a_connection_that_the_server_ended_is_replaced_before_anybody_meets_it(wrapper: DatabaseWrapper) -> None:
    first = backend(wrapper)
    end(first)
    assert backend(wrapper) != first


def test_the_raw_way_in_looks_too(kept: DatabaseWrapper) -> None:
    first = backend(kept)
    end(first)
    kept.close_if_unusable_or_obsolete()
    kept.ensure_connection()
    assert kept.connection.execute("SELECT 1").fetchone() == (1,)


def test_a_transaction_that_was_left_open_is_not_taken_over(kept: DatabaseWrapper) -> None:
    first = backend(kept)
    raw = kept.connection
    raw.execute("BEGIN")
    assert backend(kept) != first


def test_something_to_read_is_not_yet_an_end(pooled: DatabaseWrapper) -> None:
    pooled.ensure_connection()
    raw: psycopg.Connection[Any] = pooled.connection
    raw.execute("LISTEN something")
    with psycopg.connect(raw.info.dsn, password=raw.info.password) as other:
        other.execute("NOTIFY something")
    assert alive(raw)
    raw.execute("UNLISTEN *")


def test_a_plan_that_was_made_for_an_empty_table_is_made_anew_as_it_grows(kept: DatabaseWrapper) -> None:
    kept.ensure_connection()
    raw: psycopg.Connection[Any] = kept.connection
    raw.execute("CREATE TEMPORARY TABLE grown (n int PRIMARY KEY, words text)")
    raw.execute("ANALYZE grown")
    raw.execute("PREPARE one (int) AS SELECT words FROM grown WHERE n = $1")
    for _ in range(6):
        raw.execute("EXECUTE one(1)")
    raw.execute("INSERT INTO grown SELECT n, repeat('word ', 20) FROM generate_series(1, 20000) n")

    def plan() -> str:
        return "\n".join(line for (line,) in raw.execute("EXPLAIN EXECUTE one(1)").fetchall())

    assert "Seq Scan" in plan()
    for _ in range(FIRST_PLANS):
        kept.close_if_unusable_or_obsolete()
        kept.ensure_connection()
    assert kept.connection is raw and "Index Scan" in plan()
