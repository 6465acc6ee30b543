"""Child processes that end when their parent does, however it died. No Django here.

Linux's kernel kills a direct child. Grandchildren that a child forks by itself (Celery's prefork
children) call `watch_parent`, which waits on a pipe whose other end only the first parent holds:
the kernel closes it after a SIGKILL too. granian's processes call `end_with_server`. Where there is
no Linux, threads look whether parents are there.
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
LOOK_S = 0.5  # Between two looks whether a parent is there.

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
    if system.LINUX:
        system.end_with_parent(end)
        if os.getppid() != parent:  # it died before the line above
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

    Call it from the main thread: the kernel watches the thread that forked, not the process. Ctrl-C
    in a terminal reaches the parent alone, because the child leads a process group of its own.
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
        preexec_fn=(lambda: die_with_parent(parent)) if system.LINUX else None,
    )


def watch_parent() -> None:
    """Kill this process as soon as the first parent of `spawn_child`, if any, is gone."""
    global _watched
    read_end = os.environ.get(LIFE_FD, "")
    if not read_end or _watched == os.getpid():
        return
    # Once in every process, after each fork, too: threads do not survive one.
    _watched = os.getpid()

    def wait_for_end() -> None:
        with contextlib.suppress(OSError):  # a closed descriptor: whoever closed it does not want to be watched over
            if os.read(int(read_end), 1) == b"":
                os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=wait_for_end, name="watch-parent", daemon=True).start()


def end_with_server() -> None:
    """End when the web server that made this process does; elsewhere do nothing."""
    server = multiprocessing.parent_process()
    if server is not None and server.pid is not None:
        # Otherwise it would go on answering beside the server that takes its place.
        die_with_parent(server.pid)
        if not system.LINUX and LIFE_FD in os.environ:
            holder = system.parent_of(server.pid)
            threading.Thread(target=_end_server, args=(server.pid, holder), name="watch-server", daemon=True).start()


def _end_server(server: int, holder: int) -> None:
    """Kill the web server when who started it is gone, which it does not notice by itself."""
    while (parent := system.parent_of(server)) == holder:
        time.sleep(LOOK_S)
    if parent:
        os.kill(server, signal.SIGKILL)


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
