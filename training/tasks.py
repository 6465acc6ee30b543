"""Celery tasks of training: jobs of the queue `gpu`, and the scoring of written texts by a judge."""

from corpus.errors import QuorumError
from jobs.tasks import DEVICES, JobKind, register_background, register_job_kind
from training.jobs import graded_outputs, worker_pool
from training.jobs.supervisor import supervise_job
from training.models import Job

DEVICES[worker_pool.QUEUE] = worker_pool.available_devices
work = register_job_kind(
    JobKind(
        worker_pool.WORK,
        Job,
        supervise_job,
        worker_pool.QUEUE,
        lambda: {"device__in": worker_pool.available_devices()},
    )
)
# On the judges' queue, since it asks a judge and needs no GPU.
judge_outputs = register_background(
    graded_outputs.TASK,
    lambda job, _lease: graded_outputs.score_outputs(job.subject, **job.arguments),
    expected=QuorumError,
)
