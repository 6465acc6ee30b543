"""Disks that are full: how an error says so, whoever met it."""

import errno
import os
from collections.abc import Iterator

NO_ROOM = {errno.ENOSPC, errno.EDQUOT}
# PostgreSQL's own code; while a connection begins it has only the words.
DISK_FULL = "53100"
WORDS = os.strerror(errno.ENOSPC)


def is_full(error: BaseException) -> bool:
    """Return whether an error says that a disk has no room, ours or PostgreSQL's."""
    return any(
        getattr(cause, "errno", None) in NO_ROOM
        or getattr(cause, "sqlstate", None) == DISK_FULL
        or (type(cause).__name__ == "OperationalError" and WORDS in str(cause))
        for cause in _causes(error)
    )


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
