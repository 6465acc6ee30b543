"""Recognising errors that mean a full disk."""

import errno
import os

NO_ROOM = {errno.ENOSPC, errno.EDQUOT}
# PostgreSQL's SQLSTATE; errors while connecting have only the message.
DISK_FULL = "53100"
MESSAGE = os.strerror(errno.ENOSPC)


def means_full_disk(error: BaseException) -> bool:
    """Return whether an error or its cause means that our disk or PostgreSQL's is full."""
    cause: BaseException | None = error
    while cause is not None:
        if getattr(cause, "errno", None) in NO_ROOM or getattr(cause, "sqlstate", None) == DISK_FULL:
            return True
        if type(cause).__name__ == "OperationalError" and MESSAGE in str(cause):
            return True
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return False
