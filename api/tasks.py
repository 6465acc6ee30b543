"""Background tasks of the API: deliver webhooks, write alarms of audits, delete old deliveries and stored answers."""

from collections.abc import Callable

from celery import shared_task

from api import idempotency
from api.webhooks import alarms, delivering, services
from jobs.notifications import notify, redis_client, redis_key
from jobs.tasks import CHORES, MESSAGE_EXPIRY_S, is_shutting_down

# ADR 0091: people answer audits for days, and the query joins all recent answers.
LOOK_FOR_ALARMS_S = 30
CLEAN_UP_S = 3_600


# No result: the log of deliveries has the outcome of each.
@shared_task(name=services.TASK, ignore_result=True)  # type: ignore[untyped-decorator]  # celery has no types
def deliver_webhooks() -> None:
    """Send due deliveries. The notification is cleared first, so that later ones send a new one."""
    redis_client().delete(redis_key("told", services.TASK))
    delivering.deliver_due(is_shutting_down)


def wake_deliverer() -> None:
    """Notify a worker if a delivery is due, after its pause or because its worker was killed."""
    # The database is asked first: mostly nothing is due, and then nothing is written to Redis.
    if delivering.is_any_due() and _is_first(services.TASK, MESSAGE_EXPIRY_S):
        notify(services.TASK)


def _is_first(chore: str, seconds: int) -> bool:
    """Claim a chore: return whether no worker has claimed it in the last seconds."""
    return bool(redis_client().set(redis_key("told", chore), 1, nx=True, ex=seconds))


def _do_chores() -> None:
    for seconds, name, act in OCCASIONAL_CHORES:
        if _is_first(name, seconds):
            act()


OCCASIONAL_CHORES: tuple[tuple[int, str, Callable[[], object]], ...] = (
    (LOOK_FOR_ALARMS_S, "webhooks.alarms", alarms.write_alarms),
    (CLEAN_UP_S, "webhooks.clean", services.delete_old_deliveries),
    (CLEAN_UP_S, "api.answers.clean", idempotency.delete_old_answers),
)
# On the unnamed queue, that of ordinary workers; trainers do not run these.
CHORES += [("", wake_deliverer), ("", _do_chores)]
