"""Whether what a page follows waits in vain: nobody is there to work at it. Reads only."""

from datetime import timedelta

from django.utils import timezone

from benchmark.models import Filling
from jobs import notifications, workers
from jobs.models import LeasedJob
from judges.models import Campaign

PATIENCE_S = 8.0
"""A worker that is starting takes as long until it is heard of."""


def is_unattended(*followed: LeasedJob | Filling | None) -> bool:
    """One of these needs a worker, for some seconds already, and none serves this instance."""
    old = timezone.now() - timedelta(seconds=PATIENCE_S)
    waiting = any(one is not None and one.created_at < old and _needs_worker(one) for one in followed)
    return waiting and not notifications.is_away() and not workers.has_workers()


def _needs_worker(one: LeasedJob | Filling) -> bool:
    if isinstance(one, LeasedJob):
        return not one.is_over
    if one.state != Filling.State.JUDGING:
        return one.needs_worker
    return Campaign.objects.filter(pk=one.campaign or 0, state=Campaign.State.RUNNING).exists()
