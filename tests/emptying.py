"""What a transactional test leaves in the tables is removed, and what the migrations had put there is put back.

Django's own flush knows neither tables without a managed model nor rows that migrations make, and
TRUNCATE of all tables takes as long as many a test: rows are deleted where there are any.
"""

from typing import Any

from django.db import OperationalError, connection, transaction

KEPT_TABLES = ("django_migrations", "django_content_type", "auth_permission")
TRIES = 5
LARGE = 2_000_000
"""Bytes of a table that is truncated: deleted rows are read by later tests until they are vacuumed."""


class Emptier:
    """All tables of the test's database, with the rows that they have now."""

    def __init__(self) -> None:
        with connection.cursor() as cursor:
            names = connection.introspection.table_names(cursor)
            self.tables = [f'"{name}"' for name in names if name not in KEPT_TABLES]
            self.kept = {table: rows for table in self.tables if (rows := copy_out(cursor, table))}

    def empty(self) -> None:
        """Once more after a deadlock, and after a worker that still wrote: it holds one table and waits for another."""
        for tries_left in reversed(range(TRIES)):
            try:
                with transaction.atomic(), connection.cursor() as cursor:
                    self._remove(cursor)
                    self._put_back(cursor)
                    if not self._filled(cursor):
                        return
            except OperationalError:
                if not tries_left:
                    raise

    def _remove(self, cursor: Any) -> None:
        is_superuser, is_large = self._size(cursor)
        if is_superuser:  # as of the embedded PostgreSQL
            cursor.execute("SET LOCAL session_replication_role = replica")  # neither triggers nor foreign keys
        if is_superuser and not is_large:
            for table in [*self._filled(cursor), *self.kept]:
                cursor.execute(f"DELETE FROM {table}")
            return
        if not is_superuser:  # append-only tables refuse
            self._alter(cursor, "DISABLE TRIGGER USER")
        cursor.execute(f"TRUNCATE {', '.join(self.tables)} CASCADE")
        if not is_superuser:
            self._alter(cursor, "ENABLE TRIGGER USER")

    def _alter(self, cursor: Any, change: str) -> None:
        for table in self.tables:
            cursor.execute(f"ALTER TABLE {table} {change}")

    def _size(self, cursor: Any) -> tuple[bool, bool]:
        """Whether we are a superuser, and whether a table is large."""
        size = "SELECT max(pg_relation_size(one)) FROM unnest(%s::regclass[]) one"
        cursor.execute(f"SELECT current_setting('is_superuser')::bool, ({size}) >= %s", [self.tables, LARGE])
        is_superuser, is_large = cursor.fetchone()
        return bool(is_superuser), bool(is_large)

    def _filled(self, cursor: Any) -> list[str]:
        """Tables with rows, beside those that always have some."""
        rest = [table for table in self.tables if table not in self.kept]
        cursor.execute(" UNION ALL ".join(f"SELECT '{table}' WHERE EXISTS (SELECT FROM {table})" for table in rest))
        return [name for (name,) in cursor.fetchall()]

    def _put_back(self, cursor: Any) -> None:
        for table, rows in self.kept.items():
            with cursor.copy(f"COPY {table} FROM STDIN") as copy:
                copy.write(rows)


def copy_out(cursor: Any, table: str) -> bytes:
    """All rows of a table as COPY writes them; b"" for none, and for a partitioned table."""
    cursor.execute("SELECT relkind = 'p' FROM pg_class WHERE oid = %s::regclass", [table])
    if cursor.fetchone()[0]:
        return b""
    with cursor.copy(f"COPY {table} TO STDOUT") as copy:
        return b"".join(bytes(part) for part in copy)
