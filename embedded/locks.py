"""File locks in VAR. A flock belongs to an open file: children inherit it, and it is released with the last of them."""

import fcntl
import os
from pathlib import Path


def open_lock(path: Path) -> int:
    """Open a lock file, and create it if necessary; the descriptor is closed on exec."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def try_exclusive(descriptor: int) -> bool:
    """Take the exclusive lock, or return False immediately."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_held(path: Path) -> bool:
    """Return whether any process holds the exclusive lock.

    A process that tries to take it during this check fails, and has to try again.
    """
    descriptor = open_lock(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
