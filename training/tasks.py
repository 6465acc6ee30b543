"""Celery's side of training: the queue `gpu`, one job at a time for each process of a worker."""

import logging
import multiprocessing
import threading
from typing import Any

from billiard.process import current_process
from celery import shared_task, signals
from django.db import close_old_connections, connection
from redis.exceptions import RedisError

from jobs import leases
from training.jobs import graded_outputs, worker_pool
from training.jobs.supervisor import supervise
from training.models import Job

BEAT_S = 2.0

logger = logging.getLogger(__name__)
stopping = multiprocessing.get_context("fork").Value("b", 0)
"""Shared by a worker's processes: the worker shuts down, jobs save and go back to the queue."""


def _work() -> None:
    """Take jobs up until none waits."""
    while not stopping.value and (job := leases.claim(Job, device__in=worker_pool.devices())) is not None:
        supervise(job, lambda: bool(stopping.value), gpu=_gpu(job))


work = shared_task(_work, name=worker_pool.WORK, ignore_result=True)
judge_outputs = shared_task(graded_outputs.score, name=graded_outputs.TASK, ignore_result=True)
"""For workers of the judges' queue: it asks a judge and needs no GPU."""


def _gpu(job: Job) -> int | None:
    """One process, one GPU; a job for the CPU sees none."""
    return None if job.device != "cuda" else int(getattr(current_process(), "index", 0))


def waiting() -> bool:
    """A job that one of this worker's devices could do."""
    return leases.free(Job, device__in=worker_pool.devices()).exists()


def serves_queue(sender: Any) -> bool:
    """Whether this worker takes messages of ours."""
    return worker_pool.QUEUE in sender.app.amqp.queues.consume_from


def _begin(sender: Any = None, **_: Any) -> None:
    if not serves_queue(sender):
        return
    worker_pool.say_alive()
    connection.close()
    threading.Thread(target=_live, name="gpu-beat", daemon=True).start()


def _live() -> None:
    """Tell that this worker lives, and wake itself for jobs whose messages were lost."""
    pause = threading.Event()
    while not stopping.value:
        try:
            worker_pool.say_alive()
            if waiting() and worker_pool.nobody_is_told():
                worker_pool.wake()
        except RedisError as error:
            logger.warning("Redis is away: %s", error)
        except Exception:
            logger.exception("the worker cannot look for waiting jobs")
        finally:
            close_old_connections()
        pause.wait(BEAT_S)
    worker_pool.say_gone()


def _shut_down(**_: Any) -> None:
    stopping.value = 1


signals.worker_ready.connect(_begin)
signals.worker_shutting_down.connect(_shut_down)
