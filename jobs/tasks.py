"""Celery tasks of jobs: do the waiting ones, register this worker, and look for jobs whose message was lost."""

import logging
import multiprocessing
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from celery import shared_task, signals
from django.conf import settings
from django.db import close_old_connections, connection
from redis.exceptions import RedisError
from structlog.contextvars import unbind_contextvars

from jobs import leases, workers
from jobs.models import BackgroundJob, LeasedJob
from jobs.notifications import notify, redis_client, redis_key
from jobs.processes import watch_parent
from jobs.results import ResultKind

BEAT_S = 2.0
LOOK_S = 5.0
TICK_S = 1.0
# A message that the watcher sent counts as lost after so long: until then all workers may be busy.
MESSAGE_EXPIRY_S = 30

logger = logging.getLogger(__name__)
# Shared by a worker's processes: the worker is shutting down, and its jobs will wait for another.
shutdown_flag = multiprocessing.get_context("fork").Value("b", 0)


@dataclass(frozen=True, slots=True)
class JobKind:
    """Jobs of one table: the task that does them, its queue, and which of them this worker may claim."""

    task: str
    model: type[LeasedJob]
    # work(job, should_stop): do a claimed job until it is over, or released because the worker stops.
    work: Callable[[Any, Callable[[], bool]], None]
    queue: str = ""
    only: Callable[[], dict[str, Any]] = dict  # Further conditions on the jobs, as for `filter`.


KINDS: list[JobKind] = []
# (queue, what its workers also do every few seconds).
CHORES: list[tuple[str, Callable[[], None]]] = []
# The same every second, for what is cheap.
TICKS: list[tuple[str, Callable[[], None]]] = []
# By queue, the devices of this machine for its jobs.
DEVICES: dict[str, Callable[[], tuple[str, ...]]] = {}


def register_job_kind(kind: JobKind) -> Any:
    """Register a kind of jobs and return its Celery task."""

    def do_jobs() -> None:
        # All free jobs are done, not only that of the message's request.
        unbind_contextvars("request_id")
        # At first, so that a job that comes while this worker is busy gets a new message.
        _forget_message(kind)
        while not is_shutting_down() and (job := leases.claim(kind.model, **kind.only())) is not None:
            with workers.at_work(f"{job._meta.verbose_name} {job}", kind.queue):
                kind.work(job, is_shutting_down)

    KINDS.append(kind)
    return shared_task(do_jobs, name=kind.task, ignore_result=True)


def register_background(
    task: str, work: Callable[[BackgroundJob, leases.Lease], object], *, expected: type[Exception] = leases.LeaseLost
) -> Any:
    """Return the Celery task of a kind of BackgroundJob. `expected`: as in `leases.perform`."""

    def perform(job: BackgroundJob, _should_stop: Callable[[], bool]) -> None:
        leases.perform(job, partial(work, job), expected=expected)

    return register_job_kind(JobKind(task, BackgroundJob, perform, only=lambda: {"kind": task}))


def register_result(kind: ResultKind) -> Any:
    """Return the Celery task that computes a kind of cached results; a lost or cancelled job stores nothing."""

    def compute(job: BackgroundJob, lease: leases.Lease) -> None:
        def report_progress(done: int, total: int, phase: str) -> None:
            # Only between steps, which cannot be interrupted.
            lease.progress(done, total, phase)
            if lease.should_stop():
                raise leases.LeaseLost

        row = kind.table._default_manager.filter(pk=job.subject).select_related("collection").first()
        if row is not None:
            kind.store(row, report_progress)

    return register_background(kind.task, compute)


def is_shutting_down() -> bool:
    return bool(shutdown_flag.value)


def _message_key(kind: JobKind) -> str:
    return redis_key("told", kind.task)


def look_for_jobs(queues: Iterable[str]) -> None:
    """Send a message for each kind with a free job, whose message was lost or whose worker died; then do the chores."""
    for kind in KINDS:
        if _queue_name(kind.queue) not in queues:
            continue
        with _log_errors():
            is_waiting = leases.free_jobs(kind.model, **kind.only()).exists()
            # Only one of a queue's watchers sends the message.
            if is_waiting and redis_client().set(_message_key(kind), 1, nx=True, ex=MESSAGE_EXPIRY_S):
                notify(kind.task, queue=_queue_name(kind.queue))
    for queue, chore in CHORES:
        if _queue_name(queue) in queues:
            with _log_errors():
                chore()


def _forget_message(kind: JobKind) -> None:
    redis_client().delete(_message_key(kind))


def _queue_name(name: str) -> str:
    return name or str(settings.CELERY_TASK_DEFAULT_QUEUE)


@contextmanager
def _log_errors() -> Iterator[None]:
    """Log the errors of the block instead of raising them, so that the watcher continues."""
    try:
        yield
    except RedisError as error:
        logger.warning("Redis is away: %s", error)
    except Exception:
        logger.exception("the worker cannot look for what waits")
    finally:
        close_old_connections()


def _on_worker_ready(sender: Any = None, **_: Any) -> None:
    queues = list(sender.app.amqp.queues.consume_from) if sender is not None else [_queue_name("")]
    slots = int(sender.pool.num_processes) if getattr(sender, "pool", None) else 1
    queue_workers = [(queue, slots, DEVICES.get(queue, tuple)()) for queue in queues]
    watch_parent()
    for queue_worker in queue_workers:
        workers.register_worker(*queue_worker)
    # The worker's main thread makes no more queries, but would keep its connection.
    connection.close()
    threading.Thread(target=_send_heartbeats, args=(queue_workers,), name="worker-beat", daemon=True).start()
    threading.Thread(target=_watch_queues, args=(queues,), name="worker-watch", daemon=True).start()


def _send_heartbeats(queue_workers: list[tuple[str, int, tuple[str, ...]]]) -> None:
    """Register this worker at intervals, apart from the watcher, whose chores may take a while."""
    pause = threading.Event()
    while not is_shutting_down():
        for queue_worker in queue_workers:
            with _log_errors():
                workers.register_worker(*queue_worker)
        pause.wait(BEAT_S)
    for queue_worker in queue_workers:
        with _log_errors():
            workers.deregister_worker(*queue_worker)


def _watch_queues(queues: list[str]) -> None:
    pause, looked_at = threading.Event(), -LOOK_S
    # Earlier messages may wait behind long jobs of busy workers; this new worker is free, so messages are sent again.
    for kind in KINDS:
        if _queue_name(kind.queue) in queues:
            with _log_errors():
                _forget_message(kind)
    while not is_shutting_down():
        if time.monotonic() - looked_at >= LOOK_S:
            looked_at = time.monotonic()
            look_for_jobs(queues)
        for queue, tick in TICKS:
            if _queue_name(queue) in queues:
                with _log_errors():
                    tick()
        pause.wait(TICK_S)


def _shut_down(**_: Any) -> None:
    shutdown_flag.value = 1


signals.worker_ready.connect(_on_worker_ready)
signals.worker_shutting_down.connect(_shut_down)
