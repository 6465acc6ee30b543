"""Celery's side of training: the queue `gpu`, one job at a time for each process of a worker."""

from collections.abc import Callable

from billiard.process import current_process

from corpus.errors import QuorumError
from jobs.tasks import DEVICES, JobKind, register, register_background
from training.jobs import graded_outputs, worker_pool
from training.jobs.supervisor import supervise
from training.models import Job


def _supervise(job: Job, stopping: Callable[[], bool]) -> None:
    supervise(job, stopping, gpu=_gpu(job))


def _gpu(job: Job) -> int | None:
    """One process, one GPU; a job for the CPU sees none."""
    return None if job.device != "cuda" else int(getattr(current_process(), "index", 0))


DEVICES[worker_pool.QUEUE] = worker_pool.devices
work = register(
    JobKind(worker_pool.WORK, Job, _supervise, worker_pool.QUEUE, lambda: {"device__in": worker_pool.devices()})
)
judge_outputs = register_background(
    graded_outputs.TASK, lambda job, _lease: graded_outputs.score(job.subject, **job.arguments), expected=QuorumError
)
"""For workers of the judges' queue: it asks a judge and needs no GPU."""
