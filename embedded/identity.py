"""Other users for PostgreSQL, which runs neither as uid 0 nor as a uid without a name. No system user is made.

First choice: a user namespace that shows us as a uid that has a name, so files stay ours. Where namespaces are
forbidden (most containers) root becomes uid 65534 with root's right to pass closed folders as an ambient capability.
"""

import ctypes
import os
import pwd
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

from jobs.processes import PR_SET_PDEATHSIG

CLONE_NEWUSER = 0x10000000
PR_SET_KEEPCAPS, PR_SET_SECUREBITS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE = 8, 28, 47, 2
SECBIT_NO_SETUID_FIXUP, SECBIT_KEEP_CAPS = 4, 16
CAP_DAC_OVERRIDE = 1
CAPABILITY_VERSION_3 = 0x20080522
NOBODY = 65534

_libc = ctypes.CDLL(None, use_errno=True)


def same_user() -> None:
    """Change nothing, as suits an ordinary user."""


def has_name(uid: int) -> bool:
    """Return whether /etc/passwd, or what stands for it, knows the uid."""
    try:
        return bool(pwd.getpwuid(uid))
    except KeyError:
        return False


def in_namespace() -> None:
    """Become the first uid with a name, other than root, of a new user namespace; outside it we are who we are."""
    uid, gid = os.geteuid(), os.getegid()
    named = next((one for one in pwd.getpwall() if one.pw_uid), None)
    if named is None or _libc.unshare(CLONE_NEWUSER):
        raise OSError(ctypes.get_errno(), "user namespaces are forbidden here")
    # The kernel lets an unprivileged process map its group only after this.
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/gid_map").write_text(f"{named.pw_gid} {gid} 1")
    Path("/proc/self/uid_map").write_text(f"{named.pw_uid} {uid} 1")


def as_nobody() -> None:
    """Turn root into uid 65534, which keeps CAP_DAC_OVERRIDE alone."""
    # Without the first bit access(2) forgets the capability, and PostgreSQL asks it whether its programs are there.
    if _libc.prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP | SECBIT_KEEP_CAPS, 0, 0, 0):
        _libc.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0)
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    bit = 1 << CAP_DAC_OVERRIDE
    sets = (ctypes.c_uint32 * 6)(bit, bit, bit, 0, 0, 0)  # effective, permitted, inheritable; then the upper halves
    if _libc.capset(header, sets) or _libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_OVERRIDE, 0, 0):
        raise OSError(ctypes.get_errno(), "uid 65534 may not keep its way to VAR")


def choose_identity() -> tuple[Callable[[], None], int]:
    """Return what the child calls, and the owner of its files outside. Raises OSError where no way is open."""
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
    wanted = os.environ.get("QUORUM_ROOT_AS", "")  # "namespace" or "nobody": for tests and odd machines
    if wanted != "nobody" and _can_run_as(in_namespace):
        return in_namespace, 0
    if wanted != "namespace" and _can_run_as(as_nobody):
        return as_nobody, NOBODY
    raise OSError("PostgreSQL does not run as root here: run as an ordinary user, or set DATABASE_URL and REDIS_URL.")


def _can_run_as(change: Callable[[], None]) -> bool:
    try:
        return subprocess.run(["/bin/true"], preexec_fn=change, check=False).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


def prepare_child(change: Callable[[], None], end_signal: int = signal.SIGKILL) -> Callable[[], None]:
    """Return what a service's process does before exec: a group of its own, another user, an end with the keeper."""

    def prepare() -> None:
        os.setpgid(0, 0)
        change()
        # The kernel sends this signal when the keeper's main thread ends. Last, because changing the user clears it.
        _libc.prctl(PR_SET_PDEATHSIG, end_signal, 0, 0, 0)

    return prepare
