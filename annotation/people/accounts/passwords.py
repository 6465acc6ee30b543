"""Passwords are hashed a few at a time, and without a database connection.

A hash takes a processor and memory, on purpose. When forty people sign in at once, or a stranger
tries passwords, hashes wait for each other here and not in the pool of connections, where everybody
else would wait too (docs/adr/0028).
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib.auth.hashers import Argon2PasswordHasher

from jobs.connections import without_connection

# In each web process, of which there is one for each processor. Beside another program that keeps
# it busy, hashes get three quarters of it, so that a class comes in; beside hashes alone, a page
# still gets its share.
AT_ONCE = 3
_turns = threading.BoundedSemaphore(AT_ONCE)
_thread = threading.local()


@contextmanager
def hashing_turn() -> Iterator[None]:
    """Wait until this thread may hash a password; who has a turn already goes on."""
    if getattr(_thread, "has_turn", False):
        yield
        return
    with without_connection():
        _turns.acquire()
    _thread.has_turn = True
    try:
        yield
    finally:
        _thread.has_turn = False
        _turns.release()


class PasswordHasher(Argon2PasswordHasher):
    """Argon2id with the memory (KiB) and passes that OWASP recommends."""

    time_cost = 2
    memory_cost = 19_456
    parallelism = 1

    def encode(self, password: str, salt: str) -> str:
        """Hash a password in a turn of its own."""
        with hashing_turn(), without_connection():
            return super().encode(password, salt)

    def verify(self, password: str, encoded: str) -> bool:
        """Compare a password with a hash in a turn of its own."""
        with hashing_turn(), without_connection():
            return super().verify(password, encoded)
