"""Celery's side of the API: deliver webhooks, write alarms of audits, delete old deliveries and kept answers."""

from collections.abc import Callable

from celery import shared_task

from api import idempotency
from api.webhooks import alarms, delivering, services
from jobs.notifications import notify, redis_client, redis_key
from jobs.tasks import CHORES, TOLD_S, is_shutting_down

# ADR 0091: people answer audits for days, and the query joins all that was answered lately.
LOOK_FOR_ALARMS_S = 30
CLEAN_UP_S = 3_600


# Nobody waits for a result: the log of deliveries says what became of each.
@shared_task(name=services.TASK, ignore_result=True)  # type: ignore[untyped-decorator]  # celery has no types
def deliver_webhooks() -> None:
    """Send what is due. What comes while this worker delivers must be told of again, so that is forgotten first."""
    redis_client().delete(redis_key("told", services.TASK))
    delivering.deliver_due(is_shutting_down)


def wake_deliverer() -> None:
    """Wake a worker where a delivery is due: its pause is over, or the worker that had claimed it was killed."""
    # The database first: mostly nothing is due, and then nothing is written to Redis.
    if delivering.is_any_due() and _is_first(services.TASK, TOLD_S):
        notify(services.TASK)


def _is_first(what: str, seconds: int) -> bool:
    """Return whether no worker has done `what` in the last seconds; from now on this one has."""
    return bool(redis_client().set(redis_key("told", what), 1, nx=True, ex=seconds))


def _act_now_and_then() -> None:
    for seconds, name, act in NOW_AND_THEN:
        if _is_first(name, seconds):
            act()


NOW_AND_THEN: tuple[tuple[int, str, Callable[[], object]], ...] = (
    (LOOK_FOR_ALARMS_S, "webhooks.alarms", alarms.write_alarms),
    (CLEAN_UP_S, "webhooks.clean", services.delete_old_deliveries),
    (CLEAN_UP_S, "api.answers.clean", idempotency.delete_old_answers),
)
# The empty name is the common queue of workers; a worker for training alone delivers nothing.
CHORES += [("", wake_deliverer), ("", _act_now_and_then)]
