"""Work on what strangers sent, in a child process that is killed when it takes too long or too much memory. No Django.

The child is a fork: it begins at once, with all that is loaded here, and sends what it makes
through a pipe. It must not touch the database, whose connection is its parent's.
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
BATCH = 512  # Things sent together.
LOOK_S = 0.05  # Between two looks at what the child has taken.
_LENGTH = struct.Struct(">Q")
SOME, END, ERROR, CRASH = range(4)


class LimitPassed(Exception):
    """The end of a killed child: too much `what` ("seconds", "memory"), or it died."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that a child may take: seconds, and bytes beyond its parent's."""

    seconds: float
    memory: int


def run_confined(
    work: Callable[[], Iterable[T]], limits: Limits, expected: type[Exception], look: Callable[[], object] = bool
) -> Iterator[T]:
    """Yield what `work` makes in a child process.

    Raises what it raises of the `expected` errors, LimitPassed for a child that was killed, and
    RuntimeError with the traceback for any other error. `look` is called while the child is silent,
    and may raise to end it.
    """
    parent = os.getpid()
    read_end, write_end = os.pipe()
    with warnings.catch_warnings():
        # Threads do not survive a fork. What they hold is not used by the child, which only computes.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        os.close(read_end)
        _work_in_child(work, write_end, expected, parent)
    os.close(write_end)
    try:
        yield from _receive(child, read_end, limits, look)
    finally:
        os.close(read_end)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, 0)


def _work_in_child(work: Callable[[], Iterable[Any]], pipe: int, expected: type[Exception], parent: int) -> None:
    """Send what the work makes, and end this process without the parent's cleanup."""
    code = 1
    try:
        die_with_parent(parent)
        for kind in (signal.SIGTERM, signal.SIGINT):
            signal.signal(kind, signal.SIG_DFL)
        try:
            made = iter(work())
            while batch := list(islice(made, BATCH)):
                _send(pipe, SOME, batch)
            _send(pipe, END, None)
        except expected as error:
            _send(pipe, ERROR, error)
        except MemoryError:
            _send(pipe, CRASH, "")
        except BaseException:
            _send(pipe, CRASH, traceback.format_exc())
        code = 0
    finally:
        os._exit(code)


def _send(pipe: int, kind: int, value: Any) -> None:
    data = pickle.dumps((kind, value), pickle.HIGHEST_PROTOCOL)
    view = memoryview(_LENGTH.pack(len(data)) + data)
    while view:
        view = view[os.write(pipe, view) :]


def _receive(child: int, pipe: int, limits: Limits, look: Callable[[], object]) -> Iterator[Any]:
    begin, looked = usage(child), monotonic()
    data = bytearray()
    while True:
        ready, _, _ = select.select([pipe], [], [], LOOK_S)
        if monotonic() - looked > LOOK_S:
            looked = monotonic()
            seconds, memory = usage(child)
            if seconds - begin[0] > limits.seconds:
                raise LimitPassed("seconds")
            if memory - begin[1] > limits.memory:
                raise LimitPassed("memory")
            look()
        if not ready:
            continue
        part = os.read(pipe, 1 << 20)
        if not part:
            raise LimitPassed("memory")  # killed by the system, or by its own library
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
