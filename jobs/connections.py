"""The database connection of a thread, given back while a request waits for something slow that needs none."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection


@contextmanager
def without_connection() -> Iterator[None]:
    """Do something without the connection; the next statement takes one again. In a transaction it stays."""
    if not connection.in_atomic_block:
        connection.close()
    yield
