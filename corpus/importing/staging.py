"""Staging of imported rows: COPY into temporary tables, then checks and moves by set-based SQL."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from time import monotonic
from typing import Any, TypeVar

from django.db import connection

from store.sql import execute, fetch_rows

T = TypeVar("T")

BATCH = 512  # Rows joined before they go to the server.
# Told, as (what, rows), how many rows of what have come in; shows it to a person or not.
ImportProgress = Callable[[str, int], object]


class ProgressLine:
    """A line every two seconds: what, how many, how fast. Short imports stay silent."""

    def __init__(self, write: Any, seconds: float = 2.0) -> None:
        self._write = write
        self._seconds = seconds
        self._what = ""
        self._began = self._shown = monotonic()

    def __call__(self, what: str, rows: int) -> None:
        now = monotonic()
        if what != self._what:
            self._what, self._began = what, now
        if now - self._shown >= self._seconds:
            self._shown = now
            rate = f" ({rows / (now - self._began):,.0f}/s)" if now > self._began else ""
            self._write(f"{what}: {rows:,}{rate}")


def ignore_progress(what: str, rows: int) -> None:
    """Progress that nobody watches."""


def escape_copy_text(text: str) -> str:
    r"""Return a value in COPY's text format: backslash, tab, newline and return as \\, \t, \n, \r."""
    if "\\" in text:
        text = text.replace("\\", "\\\\")
    if "\n" in text:
        text = text.replace("\n", "\\n")
    if "\t" in text:
        text = text.replace("\t", "\\t")
    if "\r" in text:
        text = text.replace("\r", "\\r")
    return text


def copy_lines(target: str, lines: Iterable[str], what: str, progress: ImportProgress) -> int:
    """COPY lines in text format, each with its newline, into `target` (table and columns); return their number."""
    count = 0
    with connection.cursor() as cursor, cursor.copy(f"COPY {target} FROM STDIN") as stream:
        for batch in _split_batches(lines):
            stream.write("".join(batch).encode())
            count += len(batch)
            progress(what, count)
    return count


def copy_binary(target: str, tuples: Iterable[bytes], what: str, progress: ImportProgress) -> int:
    """COPY tuples in binary format, a third faster than text for long texts; return their number."""
    count = 0
    with connection.cursor() as cursor, cursor.copy(f"COPY {target} FROM STDIN (FORMAT binary)") as stream:
        stream.write(b"PGCOPY\n\xff\r\n\0" + bytes(8))
        for batch in _split_batches(tuples):
            stream.write(b"".join(batch))
            count += len(batch)
            progress(what, count)
        stream.write(b"\xff\xff")
    return count


def _split_batches(rows: Iterable[T]) -> Iterator[list[T]]:
    iterator = iter(rows)
    while batch := list(islice(iterator, BATCH)):
        yield batch


def plan_for_bulk() -> None:
    """Join by hash, and in memory, until the end of the transaction."""
    # Tables that have just been filled have no statistics: without this a join of a million rows
    # was planned as nested loops and did not end in ten minutes. By hash it takes seconds.
    execute("SET LOCAL enable_nestloop = off; SET LOCAL work_mem = '64MB'")


def create_temporary_table(table: str, columns: str) -> None:
    """Make an empty temporary table until the transaction's end, replacing one."""
    execute(f"DROP TABLE IF EXISTS {table}; CREATE TEMP TABLE {table} ({columns}) ON COMMIT DROP")


def fetch_one(sql: str, **values: Any) -> tuple[Any, ...] | None:
    """Return the first row of a statement; None where it has none."""
    return next(iter(fetch_rows(sql, **values)), None)


def first_repeated(table: str, columns: str) -> tuple[Any, ...] | None:
    """Return (line, earlier line, columns ...) of the first repeated staged row."""
    return fetch_one(
        f"""SELECT line, first, {columns} FROM (
             SELECT line, {columns}, min(line) OVER same AS first, row_number() OVER same AS place
             FROM {table} WINDOW same AS (PARTITION BY {columns} ORDER BY line)) numbered
           WHERE place > 1 ORDER BY line LIMIT 1"""
    )
