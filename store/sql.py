"""SQL statements in files beside the modules that run them, with psql's parameters (`:name`)."""

import re
from pathlib import Path
from typing import Any

from django.db import connection
from psycopg.pq import Conninfo

# In texts, casts and comments a colon does not begin a parameter.
_TOKENS = re.compile(r"'[^']*'|::|(?P<comment>\s*--[^\n]*)|:(?P<parameter>[a-z_]+)")


def read_sql(module: str, name: str) -> str:
    """Return the statement in `name`.sql beside the module, with psycopg's parameters (`%(name)s`)."""

    def convert(token: re.Match[str]) -> str:
        if token["comment"]:
            return ""
        return f"%({parameter})s" if (parameter := token["parameter"]) else token[0]

    text = Path(module).with_name(f"{name}.sql").read_text(encoding="utf-8")
    return _TOKENS.sub(convert, text.replace("%", "%%")).strip().removesuffix(";")


def fetch_rows(sql: str, **values: Any) -> list[tuple[Any, ...]]:
    """Return the rows of a statement on Django's connection."""
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall())


def fetch_row(sql: str, **values: Any) -> tuple[Any, ...]:
    """Return the only row of a statement on Django's connection."""
    (row,) = fetch_rows(sql, **values)
    return row


def execute(sql: str, **values: Any) -> int:
    """Run a statement on Django's connection and return how many rows it changed."""
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return int(cursor.rowcount)


def database_parameters() -> dict[str, Any]:
    """Return the parameters of Django's connection for psycopg, without a pool."""
    # All that libpq knows, such as certificates, without options of Django or psycopg.
    keywords = {option.keyword.decode() for option in Conninfo.get_defaults()}
    values: dict[str, Any] = connection.get_connection_params()
    return {name: value for name, value in values.items() if name in keywords and value}
