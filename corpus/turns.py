"""Turns of requests in a web process: one that only waits lets the next begin (config.web_worker)."""

import threading
from collections.abc import Callable

_here = threading.local()


def begin(give_up: Callable[[], None]) -> None:
    """The turn of a request begins in this thread; `give_up` lets the next one begin before it has ended."""
    _here.give_up = give_up


def give_up() -> None:
    """What comes is a wait and no work. Outside a web process it means nothing."""
    if found := getattr(_here, "give_up", None):
        found()
