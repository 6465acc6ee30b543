"""Celery's side of jobs: work off what waits, say that this worker lives, and look for what nobody was told of."""

import logging
import multiprocessing
import threading
import time
from collections.abc import Callable, Iterable
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
# A message that the watcher sent is taken for lost after so long: all workers may be busy until then.
TOLD_S = 30

logger = logging.getLogger(__name__)
# Shared by a worker's processes: the worker shuts down, what it works on waits for another.
stopping = multiprocessing.get_context("fork").Value("b", 0)


@dataclass(frozen=True, slots=True)
class JobKind:
    """Jobs of one table: the task that works them off, in which queue, and which of them this worker may take."""

    task: str
    model: type[LeasedJob]
    # work(job, stopping): do a claimed job's work until it is over, or given back because the worker stops.
    work: Callable[[Any, Callable[[], bool]], None]
    queue: str = ""
    only: Callable[[], dict[str, Any]] = dict  # Further conditions on the jobs, as for `filter`.


KINDS: list[JobKind] = []
# (queue, what its workers do every few seconds besides).
CHORES: list[tuple[str, Callable[[], None]]] = []
# The same every second, for what costs next to nothing.
TICKS: list[tuple[str, Callable[[], None]]] = []
# By queue: the devices that this machine has for its jobs.
DEVICES: dict[str, Callable[[], tuple[str, ...]]] = {}


def register_job_kind(kind: JobKind) -> Any:
    """Return the Celery task of a kind of jobs, watched from now on."""

    def work_off() -> None:
        # What is free is worked off, whoever asked for it: the message's request is not theirs.
        unbind_contextvars("request_id")
        # First of all: a job that comes while this worker is busy must be told of again.
        _forget_message(kind)
        while not is_shutting_down() and (job := leases.claim(kind.model, **kind.only())) is not None:
            with workers.at_work(f"{job._meta.verbose_name} {job}", kind.queue):
                kind.work(job, is_shutting_down)

    KINDS.append(kind)
    return shared_task(work_off, name=kind.task, ignore_result=True)


def register_background(
    task: str, work: Callable[[BackgroundJob, leases.Lease], object], *, expected: type[Exception] = leases.LeaseLost
) -> Any:
    """Return the Celery task of a BackgroundJob kind; `expected` errors are brief."""

    def perform(job: BackgroundJob, _stopping: Callable[[], bool]) -> None:
        leases.perform(job, partial(work, job), expected=expected)

    return register_job_kind(JobKind(task, BackgroundJob, perform, only=lambda: {"kind": task}))


def register_result(kind: ResultKind) -> Any:
    """Return the Celery task that computes a kind of stored results; what is lost or cancelled stores nothing."""

    def compute(job: BackgroundJob, lease: leases.Lease) -> None:
        def tell(done: int, total: int, phase: str) -> None:
            # Between the steps alone, since a step itself cannot be broken off.
            lease.progress(done, total, phase)
            if lease.should_stop():
                raise leases.LeaseLost

        row = kind.table._default_manager.filter(pk=job.subject).select_related("collection").first()
        if row is not None:
            kind.store(row, tell)

    return register_background(kind.task, compute)


def is_shutting_down() -> bool:
    return bool(stopping.value)


def _told_key(kind: JobKind) -> str:
    return redis_key("told", kind.task)


def look_for_jobs(queues: Iterable[str]) -> None:
    """Send a message for every kind with a free job (its message was lost, or its holder died); then the chores."""

    def notify_kind(kind: JobKind) -> None:
        is_waiting = leases.free_jobs(kind.model, **kind.only()).exists()
        # Of all the watchers of a queue one sends the message.
        if is_waiting and redis_client().set(_told_key(kind), 1, nx=True, ex=TOLD_S):
            notify(kind.task, queue=_queue_name(kind.queue))

    for kind in KINDS:
        if _queue_name(kind.queue) in queues:
            _run_guarded(partial(notify_kind, kind))
    for queue, chore in CHORES:
        if _queue_name(queue) in queues:
            _run_guarded(chore)


def _forget_message(kind: JobKind) -> None:
    redis_client().delete(_told_key(kind))


def _queue_name(name: str) -> str:
    return name or str(settings.CELERY_TASK_DEFAULT_QUEUE)


def _run_guarded(act: Callable[[], None]) -> None:
    """Do an act; one that fails holds up no other."""
    try:
        act()
    except RedisError as error:
        logger.warning("Redis is away: %s", error)
    except Exception:
        logger.exception("the worker cannot look for what waits")
    finally:
        close_old_connections()


def _on_worker_ready(sender: Any = None, **_: Any) -> None:
    queues = list(sender.app.amqp.queues.consume_from) if sender is not None else [_queue_name("")]
    slots = int(sender.pool.num_processes) if getattr(sender, "pool", None) else 1
    served = [(queue, slots, DEVICES.get(queue, tuple)()) for queue in queues]
    watch_parent()
    for one in served:
        workers.say_alive(*one)
    # The worker's main thread asks nothing more, and would hold its connection for good.
    connection.close()
    threading.Thread(target=_send_heartbeats, args=(served,), name="worker-beat", daemon=True).start()
    threading.Thread(target=_watch_queues, args=(queues,), name="worker-watch", daemon=True).start()


def _send_heartbeats(served: list[tuple[str, int, tuple[str, ...]]]) -> None:
    """Say that this worker lives, apart from the watcher, whose chores may take a while."""
    pause = threading.Event()
    while not is_shutting_down():
        for one in served:
            _run_guarded(partial(workers.say_alive, *one))
        pause.wait(BEAT_S)
    for one in served:
        _run_guarded(partial(workers.deregister_worker, *one))


def _watch_queues(queues: list[str]) -> None:
    pause, looked = threading.Event(), -LOOK_S
    # Messages that others were sent may wait behind long work: this worker is free, and tells of the jobs anew.
    for kind in KINDS:
        if _queue_name(kind.queue) in queues:
            _run_guarded(partial(_forget_message, kind))
    while not is_shutting_down():
        if time.monotonic() - looked >= LOOK_S:
            looked = time.monotonic()
            look_for_jobs(queues)
        for queue, tick in TICKS:
            if _queue_name(queue) in queues:
                _run_guarded(tick)
        pause.wait(TICK_S)


def _shut_down(**_: Any) -> None:
    stopping.value = 1


signals.worker_ready.connect(_on_worker_ready)
signals.worker_shutting_down.connect(_shut_down)
