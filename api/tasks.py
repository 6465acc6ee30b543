"""Celery's side of the API: deliver webhooks, write alarms of audits, delete old deliveries and kept answers."""

from collections.abc import Callable

from celery import shared_task

from api import idempotency
from api.webhooks import alarms, delivering, services
from jobs.notifications import notify, redis_client, redis_key
from jobs.tasks import CHORES, TOLD_S, is_shutting_down

LOOK_FOR_ALARMS_S = 30
CLEAN_UP_S = 3_600


def _deliver() -> None:
    # First of all: what comes while this worker delivers must be told of again.
    redis_client().delete(redis_key("told", services.TASK))
    delivering.deliver_due(is_shutting_down)


deliver_webhooks = shared_task(_deliver, name=services.TASK, ignore_result=True)


def wake_deliverer() -> None:
    """Send a message where something is due: it waited for its next attempt, or its worker was killed."""
    if delivering.is_any_due() and _is_first(services.TASK, TOLD_S):
        notify(services.TASK)


def _is_first(what: str, seconds: int) -> bool:
    """Whether no worker has done so in the last seconds."""
    return bool(redis_client().set(redis_key("told", what), 1, nx=True, ex=seconds))


def _every(seconds: int, what: str, act: Callable[[], object]) -> Callable[[], None]:
    def chore() -> None:
        if _is_first(what, seconds):
            act()

    return chore


CHORES.append(("", wake_deliverer))
CHORES.append(("", _every(LOOK_FOR_ALARMS_S, "webhooks.alarms", alarms.write_alarms)))
CHORES.append(("", _every(CLEAN_UP_S, "webhooks.clean", services.delete_old_deliveries)))
CHORES.append(("", _every(CLEAN_UP_S, "api.answers.clean", idempotency.delete_old_answers)))
