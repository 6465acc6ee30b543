"""Requesting background work on a row, and reading its progress. Apps register the work (jobs.tasks)."""

import logging
from collections.abc import Collection
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from jobs.models import BackgroundJob, JobState
from jobs.notifications import notify

logger = logging.getLogger(__name__)
UNFINISHED = (JobState.WAITING, JobState.RUNNING)


@transaction.atomic
def enqueue(kind: str, subject: int, **arguments: Any) -> tuple[BackgroundJob, bool]:
    """Queue work on a subject. Return its job, and whether it is new: an unfinished one is joined."""
    BackgroundJob.objects.filter(kind=kind, subject=subject).exclude(state__in=UNFINISHED).delete()
    # Of two callers at once, the table's constraint lets one create the job, and the other gets it.
    job, is_new = unfinished(kind).get_or_create(kind=kind, subject=subject, defaults={"arguments": arguments})
    # After the commit, since before it a worker would find no row.
    transaction.on_commit(partial(notify, kind))
    # Any worker may do it, whose log lines do not have this request's id: this line connects the two.
    logger.info("job enqueued" if is_new else "job joined", extra={"job": job.log_name})
    return job, is_new


def unfinished(kind: str) -> QuerySet[BackgroundJob]:
    return BackgroundJob.objects.filter(kind=kind, state__in=UNFINISHED)


def is_unfinished(kind: str, subject: int) -> bool:
    return unfinished(kind).filter(subject=subject).exists()


def last(kind: str, subject: int) -> BackgroundJob | None:
    """Return the last job of a subject in any state; None: there is none."""
    return newest(kind, [subject]).get(subject)


def newest(kind: str, subjects: Collection[int]) -> dict[int, BackgroundJob]:
    """Return the last job of each subject that has one, by subject."""
    rows = BackgroundJob.objects.filter(kind=kind, subject__in=subjects).order_by("pk")
    return {job.subject: job for job in rows}
