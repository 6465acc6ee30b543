"""Rows on their way in: COPY into temporary tables, then checks and moves by set-based SQL."""

from collections.abc import Iterable, Iterator
from time import monotonic
from typing import Any, Protocol

from django.db import connection

BATCH = 512
"""Rows joined before they go to the server."""


class Progress(Protocol):
    """Told how many rows of what have come in; shows it to a person or not."""

    def __call__(self, what: str, rows: int) -> None:
        """`rows` of `what` so far."""


class ProgressLine:
    """A line every two seconds: what, how many, how fast. Short imports stay silent."""

    def __init__(self, write: Any, seconds: float = 2.0) -> None:
        self._write = write
        self._seconds = seconds
        self._what = ""
        self._began = self._shown = monotonic()

    def __call__(self, what: str, rows: int) -> None:
        """Show it when two seconds have passed since the last line."""
        now = monotonic()
        if what != self._what:
            self._what, self._began = what, now
        if now - self._shown >= self._seconds:
            self._shown = now
            rate = f" ({rows / (now - self._began):,.0f}/s)" if now > self._began else ""
            self._write(f"{what}: {rows:,}{rate}")


def silent(what: str, rows: int) -> None:
    """Progress that nobody watches."""


def escape(text: str) -> str:
    r"""A value in COPY's text format: backslash, tab, newline and return are written as \\, \t, \n, \r."""
    if "\\" in text:
        text = text.replace("\\", "\\\\")
    if "\n" in text:
        text = text.replace("\n", "\\n")
    if "\t" in text:
        text = text.replace("\t", "\\t")
    if "\r" in text:
        text = text.replace("\r", "\\r")
    return text


def copy(target: str, lines: Iterable[str], what: str, progress: Progress) -> int:
    """COPY lines in text format, each with its newline, into `target` (table and columns); the number of rows."""
    rows = 0
    with connection.cursor() as cursor, cursor.copy(f"COPY {target} FROM STDIN") as stream:
        for batch in _batches(lines):
            stream.write("".join(batch).encode())
            rows += len(batch)
            progress(what, rows)
    return rows


def _batches(lines: Iterable[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    for line in lines:
        batch.append(line)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def create(table: str, columns: str) -> None:
    """An empty temporary table that ends with the transaction; one of that name from an outer one is replaced."""
    execute(f"DROP TABLE IF EXISTS {table}; CREATE TEMP TABLE {table} ({columns}) ON COMMIT DROP")


def execute(sql: str, parameters: dict[str, Any] | None = None) -> int:
    """Run it; the number of rows that it touched."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return int(cursor.rowcount)


def one(sql: str, parameters: dict[str, Any] | None = None) -> tuple[Any, ...] | None:
    """The first row, or None."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        row: tuple[Any, ...] | None = cursor.fetchone()
    return row


def number(sql: str, parameters: dict[str, Any] | None = None) -> int:
    """The single number that the statement returns."""
    row = one(sql, parameters)
    return int(row[0]) if row and row[0] is not None else 0
