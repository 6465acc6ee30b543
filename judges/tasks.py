"""Celery tasks of the engine: work on campaigns, canaries, and the start and stop of worker processes."""

import logging
from typing import Any

from celery import shared_task, signals
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection
from django.db.models import Exists, OuterRef, Q, QuerySet
from structlog.contextvars import bind_contextvars

from jobs import notifications, workers
from jobs.notifications import redis_client, redis_key
from jobs.processes import watch_parent
from jobs.tasks import CHORES, TICKS, is_shutting_down
from judges.engine import budget, leases
from judges.engine import notifications as wakeups
from judges.engine import plan as plans
from judges.engine.limits import process_name
from judges.models import Campaign
from judges.models.batches import Batch
from judges.models.canaries import CanaryRound
from judges.probes import canaries
from store.sql import database_parameters, execute, fetch_rows

logger = logging.getLogger(__name__)
_child: Any = None


def _judge_campaign(campaign_id: int, generation: int) -> None:
    """Work on a campaign for a time slice, then queue the task again while there is work."""
    if is_shutting_down() or not wakeups.is_current(campaign_id, generation):
        return
    if not _in_work().filter(pk=campaign_id).exists():
        return
    try:
        # Let log lines name the request that last started the campaign.
        request_id: Any = redis_client().get(redis_key("request", campaign_id))
        if request_id is not None:
            bind_contextvars(request_id=request_id.decode())
        plan = plans.load_plan(campaign_id)
        connection.close()
        if plan is None:
            return
        with workers.at_work(plan.row.full_name):
            seconds = worker_engine().run_campaign(plan)
    except (OperationalError, InterfaceError) as error:  # the next check notifies the workers again
        logger.warning("PostgreSQL is away: %s", error)
        return
    except Exception as error:
        wakeups.record_error(campaign_id, error)
        raise
    wakeups.clear_errors(campaign_id)
    if seconds is None or not wakeups.is_current(campaign_id, generation):
        return
    if seconds == 0:
        wakeups.queue_run(campaign_id, generation)
    else:
        wakeups.wake_later(campaign_id, seconds)


judge_campaign = shared_task(_judge_campaign, name=wakeups.DRAIN, ignore_result=True)


def _in_work() -> QuerySet[Campaign]:
    """Return running campaigns, and others with open batches, whose answers must still be stored."""
    # Campaigns of `lara` call no judge: they wait for people (annotation.quality.policies.lara_live).
    open_batches = Batch.objects.filter(campaign=OuterRef("pk"), ended_at=None)
    campaigns = Campaign.objects.filter(Q(state=Campaign.State.RUNNING) | Exists(open_batches))
    return campaigns.exclude(policy=Campaign.Policy.LARA)


def _ask_canaries(now: bool = False, paid: bool = False) -> None:
    """Send canaries to the judges that are due; with `now`, to those of the default panel."""
    if is_shutting_down():
        return
    if now:
        canaries.ask_panel("", paid=paid, by=CanaryRound.By.PAGE)
    else:
        canaries.run_scheduled()


ask_canaries = shared_task(_ask_canaries, name=canaries.TASK, ignore_result=True)


def worker_engine() -> Any:
    global _child
    if _child is None:
        from judges.workers.child import Child

        _child = Child(database_parameters(), is_shutting_down)
    return _child


def reclaim_budgets() -> None:
    """Count the reservations of lost machines' workers as spent; those of this machine are reclaimed when needed."""
    holder = process_name()
    for (campaign,) in fetch_rows(budget.ABANDONED, holder=holder):
        execute(budget.RECLAIM, holder=holder, campaign=campaign)


def wake_running() -> None:
    for campaign in _in_work().values_list("pk", flat=True):
        if not wakeups.is_drained(campaign):
            wakeups.notify_workers(campaign)


def wake_due() -> None:
    for campaign in wakeups.pop_due():
        if _in_work().filter(pk=campaign).exists():
            wakeups.notify_workers(campaign)


def release_abandoned() -> None:
    """Release the pairs of dead workers in campaigns that do not run, which no claim would release."""
    execute(leases.ABANDONED)


def wake_canaries() -> None:
    """Notify a worker once canaries are due; only the first one sends them."""
    if canaries.is_due():
        notifications.notify(canaries.TASK)


def _notify_on_start(sender: Any = None, **_: Any) -> None:
    if sender is not None and settings.CELERY_TASK_DEFAULT_QUEUE not in sender.app.amqp.queues.consume_from:
        return  # a worker of another queue judges nothing
    for campaign in _in_work().values_list("pk", flat=True):
        wakeups.notify_workers(campaign)
    connection.close()


def _begin_child(**_: Any) -> None:
    watch_parent()
    connection.close()


def _end_child(**_: Any) -> None:
    if _child is not None:
        _child.close()


CHORES.extend([("", wake_running), ("", wake_canaries), ("", reclaim_budgets), ("", release_abandoned)])
TICKS.append(("", wake_due))
signals.worker_ready.connect(_notify_on_start)
signals.worker_process_init.connect(_begin_child)
signals.worker_process_shutdown.connect(_end_child)
