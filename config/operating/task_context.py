"""A task's log lines name the task, and the request that asked for it: the id travels in the message's headers."""

from typing import Any

from celery import signals
from structlog.contextvars import bind_contextvars, clear_contextvars, get_contextvars

HEADER = "quorum_request_id"


def connect_signals() -> None:
    """Carry ids from now on, in whatever process this is."""
    signals.before_task_publish.connect(send_request_id)
    signals.task_prerun.connect(bind_task)
    signals.task_postrun.connect(clear_task)


def send_request_id(headers: dict[str, Any] | None = None, **_: Any) -> None:
    """Put the request's id, if there is one, into a message that leaves."""
    found = get_contextvars().get("request_id")
    if found and headers is not None:
        headers[HEADER] = found


def bind_task(task: Any = None, **_: Any) -> None:
    """Bind the task's name, and the id that its message brought."""
    # A prefork child does one task after the other: what the last one bound must not stay.
    clear_contextvars()
    bind_contextvars(task=task.name)
    if found := getattr(task.request, HEADER, None):
        bind_contextvars(request_id=found)


def clear_task(**_: Any) -> None:
    clear_contextvars()
