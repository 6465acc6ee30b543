"""Celery's side of training: the queue `gpu`, one job at a time for each process of a worker."""

from collections.abc import Callable

from billiard.process import current_process

from corpus.errors import QuorumError
from jobs.tasks import DEVICES, JobKind, register_background, register_job_kind
from training.jobs import graded_outputs, worker_pool
from training.jobs.supervisor import supervise_job
from training.models import Job


def _supervise_job(job: Job, stopping: Callable[[], bool]) -> None:
    # A worker has as many processes as there are GPUs, and each has the one of its number; a job for the CPU none.
    gpu = None if job.device != "cuda" else int(getattr(current_process(), "index", 0))
    supervise_job(job, stopping, gpu=gpu)


DEVICES[worker_pool.QUEUE] = worker_pool.available_devices
work = register_job_kind(
    JobKind(
        worker_pool.WORK,
        Job,
        _supervise_job,
        worker_pool.QUEUE,
        lambda: {"device__in": worker_pool.available_devices()},
    )
)
# For workers of the judges' queue: it asks a judge and needs no GPU.
judge_outputs = register_background(
    graded_outputs.TASK,
    lambda job, _lease: graded_outputs.score_outputs(job.subject, **job.arguments),
    expected=QuorumError,
)
