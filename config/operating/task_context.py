"""Log lines of tasks: they name the task and the request that started it, whose id django-structlog passes on."""

from typing import Any

from django.dispatch import receiver
from django_structlog.celery import signals
from structlog.contextvars import bind_contextvars


@receiver(signals.modify_context_before_task_publish)
def send_request_id(context: dict[str, Any], **_: Any) -> None:
    """Pass on only the request's id: the sender's pair or job is not that of the task."""
    for name in context.keys() - {"request_id"}:
        del context[name]


@receiver(signals.bind_extra_task_metadata)
def bind_name(task: Any, **_: Any) -> None:
    bind_contextvars(task=task.name)
