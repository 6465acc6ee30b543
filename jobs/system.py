"""System calls that differ between Linux and macOS. Only this module asks the kernel or reads /proc.

On macOS processes watch their parents by themselves (`jobs.processes`), and PostgreSQL needs an ordinary
user. Imports no Django.
"""

import ctypes
import os
import pwd
import sys
from contextlib import suppress
from pathlib import Path

import psutil

LINUX = sys.platform == "linux"
NVIDIA_DRIVER = Path("/proc/driver/nvidia/version")

STOP_S = 20.0
OPEN_FILES = 10_240  # The most that macOS grants, even where it reports a higher limit.

PR_SET_PDEATHSIG, PR_SET_KEEPCAPS, PR_SET_SECUREBITS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE = 1, 8, 28, 47, 2
SECBIT_NO_SETUID_FIXUP, SECBIT_KEEP_CAPS = 4, 16
CAP_DAC_OVERRIDE = 1
CAPABILITY_VERSION_3 = 0x20080522
CLONE_NEWUSER = 0x10000000
NOBODY = 65534

_libc = ctypes.CDLL(None, use_errno=True)


def initdb_locale() -> list[str]:
    """Return initdb's options for C.UTF-8, also where the C library has no such locale."""
    builtin = ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    return ["--locale=C.UTF-8"] if LINUX else builtin


def end_with_parent(end: int) -> None:
    """Have the kernel signal this process when the thread that forked it ends (Linux)."""
    if LINUX:
        _libc.prctl(PR_SET_PDEATHSIG, end, 0, 0, 0)


def is_running(pid: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        return psutil.Process(pid).status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.AccessDenied:
        return True
    except psutil.Error:
        return False


def parent_of(pid: int) -> int:
    """Return the parent of a process; 0 where it does not exist."""
    try:
        return int(psutil.Process(pid).ppid())
    except psutil.Error:
        return 0


def usage(pid: int) -> tuple[float, int]:
    """Return a process's CPU seconds and unshared memory in bytes; zeros where it does not exist."""
    try:
        process = psutil.Process(pid)
        times, memory = process.cpu_times(), process.memory_info()
    except psutil.Error:
        return 0.0, 0
    return times.user + times.system, memory.rss - getattr(memory, "shared", 0)


def lock_holders(path: Path) -> list[int]:
    """Return the processes with a flock on the file: on Linux those that took it, elsewhere all that have it open."""
    pids = set()
    if not LINUX:
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if any(file.path == str(path) for file in process.open_files()):
                    pids.add(process.pid)
        return sorted(pids)
    # The kernel identifies a locked file only by its device and inode.
    inode = str(path.stat().st_ino)
    for line in Path("/proc/locks").read_text().splitlines():
        words = line.split()
        if "FLOCK" in words and "->" not in words and words[5].split(":")[-1] == inode:
            pids.add(int(words[4]))
    return sorted(pid for pid in pids if pid > 0 and psutil.pid_exists(pid))


def end_leftovers(program: str, path: Path, end: int) -> None:
    """End processes of a program with this path in their arguments, where the kernel has not (macOS)."""
    if LINUX:
        return
    for process in psutil.process_iter():
        try:
            if process.name() == program and any(str(path) in word for word in process.cmdline()):
                process.send_signal(end)
                process.wait(STOP_S)
        except psutil.Error:
            continue


def in_namespace() -> None:
    """Enter a new user namespace as its first named user except root; outside the namespace the user stays the same."""
    uid, gid = os.geteuid(), os.getegid()
    account = next((user for user in pwd.getpwall() if user.pw_uid), None)
    if not LINUX or account is None or _libc.unshare(CLONE_NEWUSER):
        raise OSError(ctypes.get_errno(), "user namespaces are forbidden here")
    # Only after this may an unprivileged process map its group.
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/gid_map").write_text(f"{account.pw_gid} {gid} 1")
    Path("/proc/self/uid_map").write_text(f"{account.pw_uid} {uid} 1")


def as_nobody() -> None:
    """Change from root to uid 65534, which keeps only CAP_DAC_OVERRIDE."""
    if not LINUX:
        raise OSError("capabilities are Linux's")
    # Without the first bit access(2) ignores the capability, and PostgreSQL checks its programs with it.
    if _libc.prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP | SECBIT_KEEP_CAPS, 0, 0, 0):
        _libc.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0)
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    bit = 1 << CAP_DAC_OVERRIDE
    sets = (ctypes.c_uint32 * 6)(bit, bit, bit, 0, 0, 0)  # Effective, permitted, inheritable; then the upper halves.
    if _libc.capset(header, sets) or _libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_OVERRIDE, 0, 0):
        raise OSError(ctypes.get_errno(), "uid 65534 may not keep its way to VAR")
