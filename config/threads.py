"""The threads of a web process: as many as there are requests at work, and the warmest first.

concurrent.futures starts a thread where none is known to be idle, up to a fixed number, and then gives work to the one
that has been idle longest. Here a thread is idle before its work is said to be done, so the next request gets the one
that worked last, whose connection and caches are warm; another is started only when all are at work.
"""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import SimpleQueue
from threading import Thread
from typing import Any

Inbox = SimpleQueue[tuple["Future[Any]", Callable[[], Any]] | None]
NAME = "request"


class Threads(Executor):
    """An executor without a limit: whoever submits, one thread only, keeps to theirs."""

    def __init__(self) -> None:
        self._idle: list[Inbox] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Begin it at once."""
        future: Future[Any] = Future()
        inbox = self._idle.pop() if self._idle else self._started()
        inbox.put((future, lambda: fn(*args, **kwargs)))
        return future

    def _started(self) -> Inbox:
        inbox: Inbox = SimpleQueue()
        Thread(target=self._work, args=(inbox,), name=NAME, daemon=True).start()
        return inbox

    def _work(self, inbox: Inbox) -> None:
        while (given := inbox.get()) is not None:
            future, work = given
            found: Any = None
            error: BaseException | None = None
            try:
                found = work()
            except BaseException as raised:
                error = raised
            self._idle.append(inbox)
            if error is None:
                future.set_result(found)
            else:
                future.set_exception(error)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Idle threads end; nothing is waited for, since what is at work is the caller's to wait for."""
        while self._idle:
            self._idle.pop().put(None)
