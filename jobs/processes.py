"""Child processes that end with their parent, even if it is killed. Imports no Django.

The kernel of Linux kills direct children. Their own children (Celery's prefork processes) call
`watch_parent`, which waits on a pipe whose other end only the first parent has open: the kernel closes it
even after SIGKILL. granian's processes call `end_with_server`. On other systems, threads check whether
parents still exist.
"""

import contextlib
import multiprocessing
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO

from jobs import system

LIFE_FD = "QUORUM_LIFE_FD"
LOOK_S = 0.5  # Interval of the checks whether a parent exists.

_lock = threading.Lock()
_life: tuple[int, int] | None = None
_watched: int | None = None


def die_with_parent(parent: int, end: signal.Signals = signal.SIGKILL) -> None:
    """Send this child a signal when the parent's thread that forked it ends."""
    if system.LINUX:
        system.end_with_parent(end)
        if os.getppid() != parent:  # It died before the line above.
            os._exit(1)
        return

    def end_after_parent() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK_S)
        os.kill(os.getpid(), end)

    threading.Thread(target=end_after_parent, name="watch-parent", daemon=True).start()


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

    Call it from the main thread: the kernel watches the thread that forked instead of the process. Ctrl-C
    in a terminal reaches only the parent, because the child leads its own process group.
    """
    global _life
    # One pipe serves all children of this process, which inherit its read end.
    with _lock:
        if _life is None:
            _life = os.pipe()
    read_end, parent = _life[0], os.getpid()
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
        preexec_fn=(lambda: die_with_parent(parent)) if system.LINUX else None,
    )


def watch_parent() -> None:
    """Kill this process as soon as the process that called `spawn_child`, if any, has ended."""
    global _watched
    read_end = os.environ.get(LIFE_FD, "")
    if not read_end or _watched == os.getpid():
        return
    # Once in each process, again after a fork, which threads do not survive.
    _watched = os.getpid()

    def wait_for_end() -> None:
        with contextlib.suppress(OSError):  # A closed descriptor: the process does not want to be watched.
            if os.read(int(read_end), 1) == b"":
                os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=wait_for_end, name="watch-parent", daemon=True).start()


def end_with_server() -> None:
    """End this process with the web server that started it, if one did."""
    server = multiprocessing.parent_process()
    if server is not None and server.pid is not None:
        # Otherwise it would continue to answer requests beside the next server.
        die_with_parent(server.pid)
        if not system.LINUX and LIFE_FD in os.environ:
            holder = system.parent_of(server.pid)
            threading.Thread(target=_end_server, args=(server.pid, holder), name="watch-server", daemon=True).start()


def _end_server(server: int, holder: int) -> None:
    """Kill the web server when its parent has ended, which it does not notice by itself."""
    while (parent := system.parent_of(server)) == holder:
        time.sleep(LOOK_S)
    if parent:
        os.kill(server, signal.SIGKILL)


def stop_children(children: Iterable[subprocess.Popen[str]], patience: float = 10.0) -> None:
    """End children: SIGTERM, then after `patience` seconds SIGKILL to what remains of their process groups."""
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
