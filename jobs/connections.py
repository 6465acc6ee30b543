"""Closing a thread's database connection while a request waits for something else."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection


@contextmanager
def without_connection() -> Iterator[None]:
    """Close the connection for the block, unless it is in a transaction."""
    if not connection.in_atomic_block:
        connection.close()
    yield
