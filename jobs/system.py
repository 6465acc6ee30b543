"""What only Linux does, and beside it what is done elsewhere (macOS). Nobody else asks the kernel or reads /proc.

Elsewhere processes watch the end of their parents by themselves (`jobs.processes`), and PostgreSQL
needs an ordinary user. No Django here.
"""

import ctypes
import os
import pwd
import resource
import sys
from pathlib import Path

import psutil

LINUX = sys.platform == "linux"
NVIDIA_DRIVER = Path("/proc/driver/nvidia/version")

STOP_S = 20.0
OPEN_FILES = 10_240  # The most that macOS grants, whatever it says the limit is.

PR_SET_PDEATHSIG, PR_SET_KEEPCAPS, PR_SET_SECUREBITS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE = 1, 8, 28, 47, 2
SECBIT_NO_SETUID_FIXUP, SECBIT_KEEP_CAPS = 4, 16
CAP_DAC_OVERRIDE = 1
CAPABILITY_VERSION_3 = 0x20080522
CLONE_NEWUSER = 0x10000000
NOBODY = 65534

_libc = ctypes.CDLL(None, use_errno=True)


def initdb_locale() -> list[str]:
    """Return what gives a cluster the letters and the order of C.UTF-8, where the C library has no such locale, too."""
    builtin = ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    return ["--locale=C.UTF-8"] if LINUX else builtin


def end_with_parent(end: int) -> None:
    """Let the kernel signal this process at its forking thread's end (Linux)."""
    if LINUX:
        _libc.prctl(PR_SET_PDEATHSIG, end, 0, 0, 0)


def is_running(pid: int) -> bool:
    """Return whether a process runs, as a killed one that nobody has reaped yet does not."""
    try:
        return psutil.Process(pid).status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.AccessDenied:
        return True
    except psutil.Error:
        return False


def parent_of(pid: int) -> int:
    """Return the parent of a process; 0 for one that is gone."""
    try:
        return int(psutil.Process(pid).ppid())
    except psutil.Error:
        return 0


def usage(pid: int) -> tuple[float, int]:
    """Return a process' seconds of computing and memory; zeros if it is gone."""
    try:
        process = psutil.Process(pid)
        times, memory = process.cpu_times(), process.memory_info()
    except psutil.Error:
        return 0.0, 0
    return times.user + times.system, memory.rss - getattr(memory, "shared", 0)


def lock_holders(path: Path) -> list[int]:
    """Return living processes with a flock on the file; on Linux not heirs."""
    if not LINUX:
        return sorted(process.pid for process in psutil.process_iter() if _has_open(process, path))
    # The kernel names a locked file by its device and inode alone.
    inode = str(path.stat().st_ino)
    found = set()
    for line in Path("/proc/locks").read_text().splitlines():
        words = line.split()
        if "FLOCK" in words and "->" not in words and words[5].split(":")[-1] == inode:
            found.add(int(words[4]))
    return sorted(pid for pid in found if pid > 0 and psutil.pid_exists(pid))


def _has_open(process: psutil.Process, path: Path) -> bool:
    try:
        return any(file.path == str(path) for file in process.open_files())
    except psutil.Error:
        return False


def end_leftovers(program: str, named: Path, end: int) -> None:
    """End a program of ours by a path in its arguments, where no kernel did."""
    if LINUX:
        return
    for process in psutil.process_iter():
        try:
            if process.name() == program and any(str(named) in word for word in process.cmdline()):
                process.send_signal(end)
                process.wait(STOP_S)
        except psutil.Error:
            continue


def allow_many_files() -> None:
    """Raise the limit of open files as far as allowed: one a connection."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most if LINUX else min(most, OPEN_FILES), most))


def in_namespace() -> None:
    """Become the first uid with a name, other than root, of a new user namespace; outside it we are who we are."""
    uid, gid = os.geteuid(), os.getegid()
    named = next((user for user in pwd.getpwall() if user.pw_uid), None)
    if not LINUX or named is None or _libc.unshare(CLONE_NEWUSER):
        raise OSError(ctypes.get_errno(), "user namespaces are forbidden here")
    # The kernel lets an unprivileged process map its group only after this.
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/gid_map").write_text(f"{named.pw_gid} {gid} 1")
    Path("/proc/self/uid_map").write_text(f"{named.pw_uid} {uid} 1")


def as_nobody() -> None:
    """Turn root into uid 65534, which keeps CAP_DAC_OVERRIDE alone."""
    if not LINUX:
        raise OSError("capabilities are Linux's")
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
