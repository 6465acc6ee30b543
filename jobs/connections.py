"""The database connection of a thread, given back while it does something slow that needs none.

A web process has a few connections for its many threads. A request that hashes a password, sends a mail or asks another
server would keep one from everybody else all that time.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection


@contextmanager
def without_connection() -> Iterator[None]:
    """Do something without the connection; the next statement takes one again. In a transaction it stays."""
    if not connection.in_atomic_block:
        connection.close()
    yield
