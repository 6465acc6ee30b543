"""Child processes that end when their parent does, however it died. No Django here.

A direct child is killed by the kernel (PR_SET_PDEATHSIG). Grandchildren that a child forks by itself (Celery's prefork
children) call `watch_parent`, which waits on a pipe whose other end only the first parent holds: the kernel closes it
after a SIGKILL too. granian's processes call `end_with_server`.
"""

import contextlib
import ctypes
import multiprocessing
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO

PR_SET_PDEATHSIG = 1
LIFE_FD = "QUORUM_LIFE_FD"

_libc = ctypes.CDLL(None, use_errno=True)
_lock = threading.Lock()
_life: tuple[int, int] | None = None
_watched: int | None = None


def _life_pipe() -> int:
    """Return the read end that children inherit; one pipe serves all children of this process."""
    global _life
    with _lock:
        if _life is None:
            _life = os.pipe()
    return _life[0]


def die_with_parent(parent: int, end: signal.Signals = signal.SIGKILL) -> None:
    """Let this child get a signal when the parent's thread that forked it ends."""
    _libc.prctl(PR_SET_PDEATHSIG, end, 0, 0, 0)
    if os.getppid() != parent:  # it died before the line above
        os._exit(1)


def spawn_child(
    args: Sequence[str | Path],
    env: Mapping[str, str] | None = None,
    *,
    cwd: str | Path | None = None,
    stdout: int | IO[str] | None = None,
    stderr: int | IO[str] | None = None,
    keep: Iterable[int] = (),
) -> subprocess.Popen[str]:
    """Start a child that cannot outlive this process. `env`: the whole environment (None: ours). `keep`: descriptors.

    Call it from the main thread: the kernel watches the thread that forked, not the process. Ctrl-C in a terminal
    reaches the parent alone, because the child leads a process group of its own.
    """
    read_end = _life_pipe()
    parent = os.getpid()
    return subprocess.Popen(
        [str(arg) for arg in args],
        env={**(os.environ if env is None else env), LIFE_FD: str(read_end)},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        text=True,
        process_group=0,
        pass_fds=[read_end, *keep],
        preexec_fn=lambda: die_with_parent(parent),
    )


def watch_parent() -> None:
    """Kill this process as soon as the first parent of `spawn_child`, if any, is gone."""
    global _watched
    read_end = os.environ.get(LIFE_FD, "")
    if not read_end or _watched == os.getpid():
        return
    # Once in every process, after each fork, too: threads do not survive one.
    _watched = os.getpid()
    threading.Thread(target=_wait_for_end, args=(int(read_end),), name="watch-parent", daemon=True).start()


def end_with_server() -> None:
    """End when the web server that made this process does, however it died; elsewhere do nothing."""
    server = multiprocessing.parent_process()
    if server is not None and server.pid is not None:
        # Otherwise it would go on answering beside the server that takes its place.
        die_with_parent(server.pid)


def _wait_for_end(read_end: int) -> None:
    with contextlib.suppress(OSError):  # a closed descriptor: whoever closed it does not want to be watched over
        if os.read(read_end, 1) == b"":
            os.kill(os.getpid(), signal.SIGKILL)


def stop_children(children: Iterable[subprocess.Popen[str]], patience: float = 10.0) -> None:
    """End children: SIGTERM, then after `patience` seconds SIGKILL to whatever is left of their process groups."""
    alive = [child for child in children if child.poll() is None]
    for child in alive:
        child.send_signal(signal.SIGTERM)
    end = time.monotonic() + patience
    for child in alive:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(max(0.0, end - time.monotonic()))
    for child in alive:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def is_running(pid: int) -> bool:
    """Return whether a process runs, as a killed one that nobody has reaped yet does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"
