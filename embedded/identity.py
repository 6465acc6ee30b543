"""Users for PostgreSQL, which runs neither as uid 0 nor as a uid without a name. No system user is created.

The first choice is a user namespace in which we have a uid with a name, so that files remain ours. If namespaces are
forbidden, as in most containers, root becomes uid 65534, with root's ability to enter private folders as an ambient
capability.
"""

import os
import pwd
import signal
import subprocess
from collections.abc import Callable

from jobs.system import NOBODY, as_nobody, end_with_parent, in_namespace


def same_user() -> None:
    """Change nothing, which is right for an ordinary user."""


def has_name(uid: int) -> bool:
    """Return whether /etc/passwd, or another user database, contains the uid."""
    try:
        return bool(pwd.getpwuid(uid))
    except KeyError:
        return False


def choose_identity() -> tuple[Callable[[], None], int]:
    """Return the function that a child calls to change its user, and the owner of its files. Raises OSError."""
    uid = os.geteuid()
    if uid != 0:
        if has_name(uid):
            return same_user, uid
        if _can_run_as(in_namespace):
            return in_namespace, uid
        raise OSError(
            f"User id {uid} has no entry in /etc/passwd, and PostgreSQL does not start without one: add one, run as "
            "another user, or set DATABASE_URL and REDIS_URL."
        )
    preferred = os.environ.get("QUORUM_ROOT_AS", "")  # "namespace" or "nobody": for tests and unusual machines.
    if preferred != "nobody" and _can_run_as(in_namespace):
        return in_namespace, 0
    if preferred != "namespace" and _can_run_as(as_nobody):
        return as_nobody, NOBODY
    raise OSError("PostgreSQL does not run as root here: run as an ordinary user, or set DATABASE_URL and REDIS_URL.")


def _can_run_as(change: Callable[[], None]) -> bool:
    try:
        return subprocess.run(["true"], preexec_fn=change, check=False).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


def prepare_child(change: Callable[[], None], end_signal: int = signal.SIGKILL) -> Callable[[], None]:
    """Return a function for a service's child before exec, which sets its group, its user and its end with ours."""

    def prepare() -> None:
        os.setpgid(0, 0)
        change()
        # The kernel sends this signal when the keeper's main thread ends. Set last, since a change of user clears it.
        end_with_parent(end_signal)

    return prepare
