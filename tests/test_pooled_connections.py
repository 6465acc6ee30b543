"""The web's pool replaces connections that the server ended while they were idle."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.db import connection

from config.postgresql.base import DatabaseWrapper, alive

pytestmark = pytest.mark.django_db


@pytest.fixture
def pooled() -> Iterator[DatabaseWrapper]:
    options = {**connection.settings_dict["OPTIONS"], "pool": {"min_size": 1, "max_size": 1, "timeout": 10}}
    wrapper = DatabaseWrapper({**connection.settings_dict, "OPTIONS": options}, alias="default")
    yield wrapper
    wrapper.close()
    wrapper.close_pool()


def backend(wrapper: DatabaseWrapper) -> int:
    """The server's process behind the connection that this request got."""
    wrapper.ensure_connection()
    with wrapper.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        pid: int = cursor.fetchone()[0]
    wrapper.close()
    return pid


def end(pid: int) -> None:
    """What a restart of PostgreSQL does to a connection; returns when it is gone."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 60000)", [pid])


def test_a_living_connection_is_used_again(pooled: DatabaseWrapper) -> None:
    assert backend(pooled) == backend(pooled)


def test_a_connection_that_the_server_ended_is_replaced_before_anybody_meets_it(pooled: DatabaseWrapper) -> None:
    first = backend(pooled)
    end(first)
    assert backend(pooled) != first


def test_something_to_read_is_not_yet_an_end(pooled: DatabaseWrapper) -> None:
    pooled.ensure_connection()
    raw: psycopg.Connection[Any] = pooled.connection
    raw.execute("LISTEN something")
    with psycopg.connect(raw.info.dsn, password=raw.info.password) as other:
        other.execute("NOTIFY something")
    assert alive(raw)
    raw.execute("UNLISTEN *")
