"""Password hashing, a few hashes at a time and without a database connection.

A hash deliberately takes processor time and memory. When forty people sign in at the same moment, or
an attacker tries passwords, the hashes wait here and not in the connection pool, where all other
requests would wait too (docs/adr/0028).
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib.auth.hashers import Argon2PasswordHasher

from jobs.connections import without_connection

# In each web process, of which there is one for each processor. Beside another busy program three
# hashes get three quarters of the processor, and a page still gets its share beside three hashes.
AT_ONCE = 3
_turns = threading.BoundedSemaphore(AT_ONCE)
_thread = threading.local()


@contextmanager
def hashing_turn() -> Iterator[None]:
    """Wait until this thread may hash a password; a thread that has a turn already does not wait."""
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
        """Hash a password in a hashing turn."""
        with hashing_turn(), without_connection():
            return super().encode(password, salt)

    def verify(self, password: str, encoded: str) -> bool:
        """Compare a password with a hash in a hashing turn."""
        with hashing_turn(), without_connection():
            return super().verify(password, encoded)
