"""Celery's side of benchmark: judge workers make runs and reports, and look by themselves for what waits."""

import logging
import multiprocessing
import threading
from typing import Any

from celery import shared_task, signals
from django.conf import settings
from django.db import close_old_connections, connection
from redis.exceptions import RedisError

from benchmark import hole_filling
from benchmark.models import Report, Run
from benchmark.report import reports
from benchmark.runs import builders, waking
from jobs import leases

LOOK_S = 5.0

logger = logging.getLogger(__name__)
stopping = multiprocessing.get_context("fork").Value("b", 0)
"""Shared by a worker's processes: the worker shuts down, what it makes waits for another."""


def _make_runs() -> None:
    """Take runs up until none waits."""
    while not stopping.value and (run := leases.claim(Run)) is not None:
        builders.work(run, lambda: bool(stopping.value))


make_run = shared_task(_make_runs, name=waking.MAKE_RUN, ignore_result=True)


def _make_reports() -> None:
    """Make reports until none waits."""
    while not stopping.value and reports.take_up():
        pass


make_report = shared_task(_make_reports, name=waking.MAKE_REPORT, ignore_result=True)


def _begin(sender: Any = None, **_: Any) -> None:
    if sender is not None and settings.CELERY_TASK_DEFAULT_QUEUE not in sender.app.amqp.queues.consume_from:
        return  # a worker of another queue makes no runs
    connection.close()
    threading.Thread(target=_live, name="benchmark-beat", daemon=True).start()


def _live() -> None:
    """Wake for what waits: its message was lost, or its holder died; and look how far fillings are."""
    pause = threading.Event()
    while not stopping.value:
        try:
            if leases.free(Run).exists():
                waking.wake_runs()
            if leases.free(Report).exists():
                waking.wake_reports()
            hole_filling.advance_due()
        except RedisError as error:
            logger.warning("Redis is away: %s", error)
        except Exception:
            logger.exception("the worker cannot look for what waits")
        finally:
            close_old_connections()
        pause.wait(LOOK_S)


def _shut_down(**_: Any) -> None:
    stopping.value = 1


signals.worker_ready.connect(_begin)
signals.worker_shutting_down.connect(_shut_down)
