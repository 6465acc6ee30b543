"""Celery's side of the engine: the drain task, and what workers do when they start, live and stop."""

import logging
import multiprocessing
import threading
from collections.abc import Callable
from typing import Any

from celery import shared_task, signals
from django.conf import settings
from django.db import InterfaceError, OperationalError, close_old_connections, connection
from django.db.models import Exists, OuterRef, Q, QuerySet
from redis.exceptions import RedisError

from jobs.processes import watch_parent
from judges.engine import notifications
from judges.engine import plan as plans
from judges.models import Campaign
from judges.models.batches import Batch
from judges.models.canaries import CanaryRound
from judges.probes import canaries

BEAT_S = 2.0
LOOK_EVERY = 5

logger = logging.getLogger(__name__)
stopping = multiprocessing.get_context("fork").Value("b", 0)
"""Shared by a worker's processes: the worker shuts down, drains come to an end."""

_child: Any = None


def _drain(campaign_id: int, generation: int) -> None:
    """Work on a campaign for a while, then queue itself again."""
    if stopping.value or not notifications.is_current(campaign_id, generation):
        return
    if not _in_work().filter(pk=campaign_id).exists():
        return
    try:
        plan = plans.load(campaign_id)
        connection.close()
        more = plan is not None and child().drain(plan)
    except (OperationalError, InterfaceError) as error:  # no fault of ours: whoever looks next wakes somebody again
        logger.warning("PostgreSQL is away: %s", error)
        return
    except Exception as error:
        notifications.drain_broke(campaign_id, error)
        raise
    notifications.drain_worked(campaign_id)
    if more:
        notifications.again(campaign_id, generation)


def _in_work() -> QuerySet[Campaign]:
    """Campaigns that run, and those that stand still with batches out, whose answers are taken in all the same.

    Those of `lara` ask no judge: they wait for people (annotation.policies.lara_live).
    """
    out = Batch.objects.filter(campaign=OuterRef("pk"), ended_at=None)
    return Campaign.objects.filter(Q(state=Campaign.State.RUNNING) | Exists(out)).exclude(policy=Campaign.Policy.LARA)


drain = shared_task(_drain, name=notifications.DRAIN, ignore_result=True)


def _canaries(now: bool = False, paid: bool = False) -> None:
    """Ask the judges that are due, unless another worker does; `now`: those of the default panel."""
    if stopping.value:
        return
    if now:
        canaries.ask_panel("", paid=paid, by=CanaryRound.By.PAGE)
    else:
        canaries.run_scheduled()


ask_canaries = shared_task(_canaries, name=canaries.TASK, ignore_result=True)


def child() -> Any:
    """The engine of this worker process, started on first use."""
    global _child
    if _child is None:
        from judges.engine.child import Child
        from judges.engine.worker_loop import Pace

        _child = Child(
            dsn=database(),
            redis_url=settings.REDIS_URL,
            prefix=settings.PREFIX,
            folder=settings.VAR / "spool",
            pace=Pace(settings.PAIRS_IN_FLIGHT, settings.LEASE_SECONDS, settings.DRAIN_SECONDS),
            calls=settings.CALLS_IN_FLIGHT,
            retry_s=settings.RETRY_SECONDS,
            batch_poll=settings.BATCH_POLL_SECONDS,
            stopping=lambda: bool(stopping.value),
        )
    return _child


def database() -> dict[str, Any]:
    """Django's connection as psycopg takes it; the pool, if there is one, is not for the writer."""
    values: dict[str, Any] = connection.get_connection_params()
    known = ("dbname", "user", "password", "host", "port", "service", "passfile", "sslmode", "options")
    return {name: values[name] for name in known if values.get(name)}


def wake_running() -> None:
    """Wake-ups for running campaigns that nobody works on."""
    for campaign in _in_work().values_list("pk", flat=True):
        if not notifications.is_drained(campaign):
            notifications.send(campaign)


def wake_canaries() -> None:
    """A wake-up once canaries are due; whoever comes first takes it, the others find nothing."""
    if canaries.is_due():
        notifications.post(canaries.TASK)


LOOKS: list[Callable[[], None]] = [wake_running, wake_canaries]
"""What every worker does now and then, for messages that were lost. The rooms above add theirs."""


def _begin(sender: Any = None, **_: Any) -> None:
    if sender is not None and settings.CELERY_TASK_DEFAULT_QUEUE not in sender.app.amqp.queues.consume_from:
        return  # a worker of another queue judges nothing
    slots = int(sender.pool.num_processes) if getattr(sender, "pool", None) else 1
    watch_parent()
    notifications.say_alive(slots)
    for campaign in _in_work().values_list("pk", flat=True):
        notifications.send(campaign)
    connection.close()
    threading.Thread(target=_live, args=(slots,), name="worker-beat", daemon=True).start()


def _live(slots: int) -> None:
    """Tell that this worker lives, and wake campaigns whose messages were lost."""
    pause, beat = threading.Event(), 0
    while not stopping.value:
        pause.wait(BEAT_S)
        beat += 1
        try:
            notifications.say_alive(slots)
            if beat % LOOK_EVERY == 0:
                for look in LOOKS:
                    look()
        except RedisError as error:
            logger.warning("Redis is away: %s", error)
        except Exception:
            logger.exception("the worker cannot look for running campaigns")
        finally:
            close_old_connections()
    notifications.say_gone(slots)


def _shut_down(**_: Any) -> None:
    stopping.value = 1


def _begin_child(**_: Any) -> None:
    watch_parent()
    connection.close()


def _end_child(**_: Any) -> None:
    if _child is not None:
        _child.close()


signals.worker_ready.connect(_begin)
signals.worker_shutting_down.connect(_shut_down)
signals.worker_process_init.connect(_begin_child)
signals.worker_process_shutdown.connect(_end_child)
