"""File locks of VAR. A flock belongs to an open file: children inherit it, the kernel frees it with its last holder."""

import fcntl
import os
from pathlib import Path


def open_lock(path: Path) -> int:
    """Open (and make) a lock file; the descriptor closes on exec."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def try_exclusive(descriptor: int) -> bool:
    """Take the lock alone, or return False at once."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_held(path: Path) -> bool:
    """Return whether any process holds the lock alone. Who wants it in that instant tries again a moment later."""
    descriptor = open_lock(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
