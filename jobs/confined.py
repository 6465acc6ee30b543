"""Work on untrusted input in a child process that is killed when it takes too much time or memory. Imports no Django.

The child is a fork: it starts at once with all that is loaded here, and sends its results through a pipe.
It must not use the database, whose connection is its parent's.
"""

import contextlib
import os
import pickle
import select
import signal
import struct
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from time import monotonic
from typing import Any, TypeVar

from jobs.processes import die_with_parent
from jobs.system import usage

T = TypeVar("T")
BATCH = 512  # Results sent together.
LOOK_S = 0.05  # Interval at which the child's usage is checked.
_LENGTH = struct.Struct(">Q")
SOME, END, ERROR, CRASH = range(4)


class LimitPassed(Exception):
    """The child has passed the limit ("seconds" or "memory") and was killed; also "memory" where it died."""

    def __init__(self, limit: str) -> None:
        super().__init__(limit)
        self.limit = limit


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a child: CPU seconds, and bytes of memory beyond its parent's."""

    seconds: float
    memory: int


def run_confined(
    work: Callable[[], Iterable[T]], limits: Limits, expected: type[Exception], look: Callable[[], object] = bool
) -> Iterator[T]:
    """Yield the results of `work`, which runs in a child process.

    Raises the `expected` errors of the work, LimitPassed for a child that was killed, and RuntimeError with
    the traceback of any other error. `look` is called at intervals, and may raise to end the child.
    """
    parent = os.getpid()
    read_end, write_end = os.pipe()
    with warnings.catch_warnings():
        # Threads do not survive a fork; the child, which only computes, does not need them or their locks.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        os.close(read_end)
        # The child sends the results of the work, and ends without the parent's cleanup.
        code = 1
        try:
            die_with_parent(parent)
            for kind in (signal.SIGTERM, signal.SIGINT):
                signal.signal(kind, signal.SIG_DFL)
            try:
                results = iter(work())
                while batch := list(islice(results, BATCH)):
                    _send(write_end, SOME, batch)
                _send(write_end, END, None)
            except expected as error:
                _send(write_end, ERROR, error)
            except MemoryError:
                _send(write_end, CRASH, "")
            except BaseException:
                _send(write_end, CRASH, traceback.format_exc())
            code = 0
        finally:
            os._exit(code)
    os.close(write_end)
    try:
        yield from _receive(child, read_end, limits, look)
    finally:
        os.close(read_end)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, 0)


def _send(pipe: int, kind: int, value: Any) -> None:
    data = pickle.dumps((kind, value), pickle.HIGHEST_PROTOCOL)
    view = memoryview(_LENGTH.pack(len(data)) + data)
    while view:
        view = view[os.write(pipe, view) :]


def _receive(child: int, pipe: int, limits: Limits, look: Callable[[], object]) -> Iterator[Any]:
    start, checked_at = usage(child), monotonic()
    data = bytearray()
    while True:
        ready, _, _ = select.select([pipe], [], [], LOOK_S)
        if monotonic() - checked_at > LOOK_S:
            checked_at = monotonic()
            seconds, memory = usage(child)
            if seconds - start[0] > limits.seconds:
                raise LimitPassed("seconds")
            if memory - start[1] > limits.memory:
                raise LimitPassed("memory")
            look()
        if not ready:
            continue
        part = os.read(pipe, 1 << 20)
        if not part:
            raise LimitPassed("memory")  # Killed by the system, or crashed in a library.
        data += part
        while len(data) >= _LENGTH.size and len(data) >= (size := _LENGTH.size + _LENGTH.unpack_from(data)[0]):
            kind, value = pickle.loads(data[_LENGTH.size : size])
            del data[:size]
            if kind == SOME:
                yield from value
            elif kind == END:
                return
            elif kind == ERROR:
                raise value
            elif value:
                raise RuntimeError(value)
            else:
                raise LimitPassed("memory")
