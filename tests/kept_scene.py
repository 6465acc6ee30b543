"""A scene that takes long to build is built once in a process: each further test gets its rows back by COPY.

The numbers of its rows are those of the first time. No later row has one of them: sequences never go back.
"""

import copy
from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from django.db import connection

from tests.emptying import KEPT_TABLES, copy_out

Scene = TypeVar("Scene")
TABLES = """SELECT format('%%I', relname) FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname <> ALL(%s)"""
"""Those of the product; temporary ones stand elsewhere."""


def built_once(build: Callable[[], Scene]) -> Callable[[], Scene]:
    """`build`, whose scene is the only one in the tables and what it returns rows or tuples of rows."""
    kept: list[tuple[dict[str, bytes], Scene]] = []

    @wraps(build)
    def put() -> Scene:
        if kept:
            rows, scene = kept[0]
            _write(rows)
        else:
            scene = build()
            if is_superuser():  # else foreign keys would have to be met in order: it is built again
                kept.append((_read(), scene))
        return copy.deepcopy(scene)

    return put


def is_superuser() -> bool:
    """As of the embedded PostgreSQL."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('is_superuser')::bool")
        return bool(cursor.fetchone()[0])


def _read() -> dict[str, bytes]:
    with connection.cursor() as cursor:
        cursor.execute(TABLES, [list(KEPT_TABLES)])
        return {table: rows for (table,) in cursor.fetchall() if (rows := copy_out(cursor, table))}


def _write(rows: dict[str, bytes]) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")  # neither triggers nor foreign keys
        for table, content in rows.items():
            cursor.execute(f"DELETE FROM {table}")  # what the migrations had put there
            with cursor.copy(f"COPY {table} FROM STDIN") as target:
                target.write(content)
        cursor.execute("SET session_replication_role = origin")
