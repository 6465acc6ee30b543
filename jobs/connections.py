"""A thread's database connection, given back while a request waits for something."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection


@contextmanager
def without_connection() -> Iterator[None]:
    """Do something without the connection; in a transaction it stays."""
    if not connection.in_atomic_block:
        connection.close()
    yield
