"""Readers of uploaded files, each in a process that is killed if it takes too much time or memory for the file."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from django.utils.translation import gettext as _

from corpus.errors import BadInput
from corpus.formats.files import FileSource
from jobs.confined import LimitPassed, Limits, run_confined

T = TypeVar("T")
P = ParamSpec("P")
Reader = Callable[Concatenate[FileSource, P], Iterator[T]]
# An ordinary file is read at least ten times as fast, a workbook three times. Each file is read
# twice: to detect its content, and to import it.
SECONDS, SECONDS_A_MEGABYTE = 2.5, 10.0
MEMORY = 400 << 20
_is_confined: ContextVar[Callable[[], object] | None] = ContextVar("confined", default=None)


@contextmanager
def confined(look: Callable[[], object] = bool) -> Iterator[None]:
    """Run every reader in a separate process within this context; `look` is called regularly, and may raise."""
    token = _is_confined.set(look)
    try:
        yield
    finally:
        _is_confined.reset(token)


def confine(path: Path, name: str, work: Callable[[], Iterable[T]]) -> Iterator[T]:
    """Yield the results of work on a file, confined within `confined`. Raises BadInput, also beyond the limits."""
    look = _is_confined.get()
    if look is None:
        yield from work()
        return

    def work_here() -> Iterable[T]:
        _is_confined.set(None)
        return work()

    try:
        size = path.stat().st_size
    except FileNotFoundError:
        message = _("%(file)s: the file was deleted while it was read; add it again")
        raise BadInput(message % {"file": name}) from None
    try:
        yield from run_confined(work_here, Limits(SECONDS + SECONDS_A_MEGABYTE * size / 1e6, MEMORY), BadInput, look)
    except LimitPassed as error:
        if error.limit == "seconds":
            message = _("%(file)s: reading it takes longer than a file of its size should; look at it yourself")
        else:
            message = _("%(file)s: reading it takes more than %(most)s MB of memory; split it into smaller files")
        raise BadInput(message % {"file": name, "most": MEMORY >> 20}) from None


def confinable(read: Reader[P, T]) -> Reader[P, T]:
    """Decorate a reader of a file's rows, so that it runs in a separate process within `confined`."""

    @wraps(read)
    def read_confined(source: FileSource, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        if _is_confined.get() is None:
            return read(source, *args, **kwargs)
        return confine(source.path, str(source), lambda: read(source, *args, **kwargs))

    return read_confined
