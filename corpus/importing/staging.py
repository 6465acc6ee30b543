"""Staging of imported rows: COPY into temporary tables, then checks and moves by set-based SQL."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from time import monotonic
from typing import Any, TypeVar

from django.db import connection

from store.sql import execute, fetch_rows

T = TypeVar("T")

BATCH = 512  # Rows joined before they go to the server.
# Receives (noun, rows): the number of rows read so far, and what they are.
ImportProgress = Callable[[str, int], object]


class ProgressLine:
    """Progress as a line every two seconds, with the number of rows and their rate; none for short imports."""

    def __init__(self, write: Any, seconds: float = 2.0) -> None:
        self._write = write
        self._seconds = seconds
        self._what = ""
        self._began = self._shown = monotonic()

    def __call__(self, noun: str, rows: int) -> None:
        now = monotonic()
        if noun != self._what:
            self._what, self._began = noun, now
        if now - self._shown >= self._seconds:
            self._shown = now
            rate = f" ({rows / (now - self._began):,.0f}/s)" if now > self._began else ""
            self._write(f"{noun}: {rows:,}{rate}")


def ignore_progress(noun: str, rows: int) -> None:
    """Report no progress."""


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


def copy_lines(target: str, lines: Iterable[str], noun: str, progress: ImportProgress) -> int:
    """Copy lines in text format, with their newlines, into `target` (table and columns); return their number."""
    count = 0
    with connection.cursor() as cursor, cursor.copy(f"COPY {target} FROM STDIN") as stream:
        for batch in _split_batches(lines):
            stream.write("".join(batch).encode())
            count += len(batch)
            progress(noun, count)
    return count


def copy_binary(target: str, tuples: Iterable[bytes], noun: str, progress: ImportProgress) -> int:
    """Copy tuples in binary format, a third faster than text for long texts; return their number."""
    count = 0
    with connection.cursor() as cursor, cursor.copy(f"COPY {target} FROM STDIN (FORMAT binary)") as stream:
        stream.write(b"PGCOPY\n\xff\r\n\0" + bytes(8))
        for batch in _split_batches(tuples):
            stream.write(b"".join(batch))
            count += len(batch)
            progress(noun, count)
        stream.write(b"\xff\xff")
    return count


def _split_batches(rows: Iterable[T]) -> Iterator[list[T]]:
    iterator = iter(rows)
    while batch := list(islice(iterator, BATCH)):
        yield batch


def plan_for_bulk() -> None:
    """Make joins use hashes, in memory, until the end of the transaction."""
    # Tables that have just been filled have no statistics: a join of a million rows was planned as
    # nested loops, which took more than ten minutes, and takes seconds by hash.
    execute("SET LOCAL enable_nestloop = off; SET LOCAL work_mem = '64MB'")


def create_temporary_table(table: str, columns: str) -> None:
    """Create an empty temporary table until the end of the transaction, replacing one of the same name."""
    execute(f"DROP TABLE IF EXISTS {table}; CREATE TEMP TABLE {table} ({columns}) ON COMMIT DROP")


def fetch_one(sql: str, **values: Any) -> tuple[Any, ...] | None:
    """Return the first row of a statement, or None."""
    return next(iter(fetch_rows(sql, **values)), None)


def first_repeated(table: str, columns: str) -> tuple[Any, ...] | None:
    """Return (line, earlier line, columns ...) of the first repeated row of a staged table, or None."""
    return fetch_one(
        f"""SELECT line, first, {columns} FROM (
             SELECT line, {columns}, min(line) OVER same AS first, row_number() OVER same AS place
             FROM {table} WINDOW same AS (PARTITION BY {columns} ORDER BY line)) numbered
           WHERE place > 1 ORDER BY line LIMIT 1"""
    )
