"""Ask for background work on a row, and see how far it is. An app registers who does it in its `tasks`."""

from collections.abc import Collection
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from jobs.models import BackgroundJob, JobState
from jobs.notifications import notify

UNFINISHED = (JobState.WAITING, JobState.RUNNING)


@transaction.atomic
def enqueue(kind: str, subject: int, **arguments: Any) -> tuple[BackgroundJob, bool]:
    """Return the job that a worker will do, and whether it is new: one that waits or runs already is joined."""
    # What came of earlier ones is kept by the app's own rows.
    BackgroundJob.objects.filter(kind=kind, subject=subject).exclude(state__in=UNFINISHED).delete()
    asked = {"kind": kind, "subject": subject}
    # Of two callers at once the table's constraint lets one create it, and the other gets that one.
    found = BackgroundJob.objects.get_or_create(**asked, state__in=UNFINISHED, defaults={"arguments": arguments})
    transaction.on_commit(partial(notify, kind))
    return found


def unfinished(kind: str) -> QuerySet[BackgroundJob]:
    """Return the jobs of a kind that wait or run."""
    return BackgroundJob.objects.filter(kind=kind, state__in=UNFINISHED)


def is_unfinished(kind: str, subject: int) -> bool:
    """Whether a worker is at it, or will be."""
    return unfinished(kind).filter(subject=subject).exists()


def last(kind: str, subject: int) -> BackgroundJob | None:
    """The last job of a subject, however it stands; None where none was asked for."""
    return newest(kind, [subject]).get(subject)


def newest(kind: str, subjects: Collection[int]) -> dict[int, BackgroundJob]:
    """The same for several subjects. One statement."""
    rows = BackgroundJob.objects.filter(kind=kind, subject__in=subjects).order_by("pk")
    return {job.subject: job for job in rows}
