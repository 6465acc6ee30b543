"""The one way long work is claimed, renewed, reported, finished and cancelled (docs/operators.md).

The row is the truth. Every function is one conditional UPDATE that changes nothing for whoever does
not hold the job any more. The job of a worker that was killed is free when its lease is over.
"""

import logging
import threading
from collections.abc import Callable
from datetime import timedelta
from time import monotonic
from typing import Any, TypeVar

from django.db import DatabaseError, connection, transaction
from django.db.models import DateTimeField, Expression, ExpressionWrapper, F, Q, QuerySet
from django.db.models.functions import Coalesce, Now
from django.utils.translation import gettext as _
from structlog.contextvars import bound_contextvars

from jobs.models import LeasedJob

# Claims without progress after which a job fails: whoever takes it up dies of it.
MOST_ATTEMPTS = 5
PROGRESS_S = 0.5

Job = TypeVar("Job", bound=LeasedJob)
logger = logging.getLogger(__name__)


class LeaseLost(Exception):
    """The loss of a job, cancelled or taken over: what this one makes is not wanted."""


def free_jobs(model: type[Job], **only: Any) -> QuerySet[Job]:
    """Return jobs that wait or whose holder is gone. `only`: conditions of `filter`."""
    rows: QuerySet[Job] = model._default_manager.filter(**only)
    return rows.filter(Q(state=model.WAITING) | Q(state=model.RUNNING, lease_until__lt=Now()))


def claim(model: type[Job], **only: Any) -> Job | None:
    """Take the oldest free job under a lease; None where none is free."""
    with transaction.atomic():
        # Two workers never wait for each other's row; no_key lets rows that refer to it be written meanwhile.
        rows = free_jobs(model, **only).select_for_update(skip_locked=True, no_key=True)
        key = rows.order_by("pk").values_list("pk", flat=True).first()
        if key is None:
            return None
        row = model._default_manager.filter(pk=key)
        row.update(
            state=model.RUNNING,
            fencing_token=F("fencing_token") + 1,
            attempts=F("attempts") + 1,
            error="",
            lease_until=lease_end(model),
            started_at=Coalesce("started_at", Now()),
        )
        job = row.get()
    if job.attempts <= MOST_ATTEMPTS:
        return job
    # Claimed too often without getting further: it fails here, and the next one is taken.
    told = {"attempts": MOST_ATTEMPTS, "said": job.last_log_line()}
    why = _("taken up %(attempts)s times without getting further")
    if told["said"]:
        why = _("taken up %(attempts)s times without getting further: %(said)s")
    finish(job, job.FAILED, error=why % told)
    return claim(model, **only)


def lease_end(model: type[LeasedJob]) -> Expression:
    """Return when a lease that begins or is renewed now runs out, by the database's clock."""
    return ExpressionWrapper(Now() + timedelta(seconds=model.lease_seconds()), output_field=DateTimeField())


def held_row(job: LeasedJob) -> QuerySet[Any]:
    """Return the row of a job, or none where whoever claimed it as `job` no longer holds it."""
    rows = type(job)._default_manager.filter(pk=job.pk)
    return rows.filter(fencing_token=job.fencing_token, state=job.RUNNING)


def lock_held(job: LeasedJob) -> None:
    """Lock the row of a job until the transaction ends. Raises LeaseLost for whoever does not hold it any more."""
    if held_row(job).select_for_update(no_key=True).first() is None:
        raise LeaseLost(f"{job} was cancelled, or another worker has it")


def finish(job: LeasedJob, state: str, **changes: Any) -> bool:
    """Write the last state of a job; False when somebody else holds it by now."""
    values = {"phase": "", "lease_until": None, "ended_at": Now(), **changes}
    return bool(held_row(job).update(state=state, **values))


def give_back(job: LeasedJob, **changes: Any) -> None:
    """Let another worker go on, because this one ends by itself; the claim does not count."""
    values = {"phase": "", "lease_until": None, "attempts": max(0, job.attempts - 1), **changes}
    held_row(job).update(state=job.WAITING, **values)


def cancel(job: LeasedJob, **changes: Any) -> bool:
    """End a job now: its holder finds the token moved, and stops. False when it is over already."""
    rows = type(job)._default_manager.filter(pk=job.pk, state__in=[job.WAITING, job.RUNNING])
    values = {"state": job.CANCELLED, "phase": "", "lease_until": None, "ended_at": Now(), **changes}
    return bool(rows.update(fencing_token=F("fencing_token") + 1, **values))


def ask_to_cancel(job: LeasedJob) -> bool:
    """End a job that waits; let the holder of a running one save what it has first. False when it is over already."""
    rows = type(job)._default_manager.filter(pk=job.pk)
    if rows.filter(state=job.WAITING).update(state=job.CANCELLED, phase="", ended_at=Now()):
        return True
    return bool(rows.filter(state=job.RUNNING).update(cancel_asked=True))


def resume(job: LeasedJob, **changes: Any) -> bool:
    """Let a cancelled or failed job wait again; what was made stays. False in any other state."""
    rows = type(job)._default_manager.filter(pk=job.pk, state__in=[job.CANCELLED, job.FAILED])
    values = {"attempts": 0, "error": "", "ended_at": None, "lease_until": None, "cancel_asked": False, **changes}
    return bool(rows.update(state=job.WAITING, **values))


class Lease:
    """A context that renews a claimed job's lease. `stopping`: is this worker ending?"""

    def __init__(self, job: LeasedJob, stopping: Callable[[], bool] = lambda: False) -> None:
        self.job = job
        self.left = False
        self._stopping = stopping
        self._lost = threading.Event()
        self._over = threading.Event()
        self._told = (0.0, "")
        self._noted: tuple[int, int, str] | None = None
        self._thread = threading.Thread(target=self._renew_until_over, name="lease", daemon=True)

    def __enter__(self) -> "Lease":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def is_revoked(self) -> bool:
        return self._lost.is_set()

    def should_stop(self) -> bool:
        """Return whether to leave the job, because its lease is lost or the worker ends. Once true it stays true."""
        self.left = self.left or self.is_revoked() or self._stopping()
        return self.left

    def progress(self, done: int, total: int, phase: str = "") -> None:
        """Write a job's progress: twice a second at most, at once at a phase's ends."""
        now = monotonic()
        if now - self._told[0] < PROGRESS_S and done != total and phase == self._told[1]:
            return
        self._told = (now, phase)
        further = {"attempts": 0} if done > self.job.done else {}
        self.renew(done=done, total=total, phase=phase, **further)
        # `give_back` takes its claim off this number: the row's own is 0 by now.
        if further:
            self.job.attempts = 0
        self.job.done, self.job.total, self.job.phase = done, total, phase

    def note(self, done: int, total: int, phase: str = "") -> None:
        """Note how far the job is, inside a transaction or a COPY: the thread that renews the lease writes it."""
        self._noted = (done, total, phase)

    def renew(self, **changes: Any) -> bool:
        """Renew the lease and write columns with it; False when the job is lost."""
        if not held_row(self.job).update(lease_until=lease_end(type(self.job)), **changes):
            self._lost.set()
        return not self.is_revoked()

    def _renew_until_over(self) -> None:
        # In a thread: one step (an index over a million documents) may take longer than any lease.
        renewed = monotonic()
        try:
            while not self._over.wait(PROGRESS_S):
                noted, self._noted = self._noted, None
                if noted is None and monotonic() - renewed < self.job.lease_seconds() / 4:
                    continue
                renewed = monotonic()
                try:
                    self.progress(*noted) if noted else self.renew()
                except DatabaseError as error:  # the next try may find it; until then the lease holds
                    logger.warning("the lease of %s cannot be renewed: %s", self.job, error)
                    connection.close()
        finally:
            connection.close()


def perform(
    job: LeasedJob,
    work: Callable[[Lease], object],
    *,
    stopping: Callable[[], bool] = lambda: False,
    expected: type[Exception] = LeaseLost,
    last: Callable[[], dict[str, Any]] = dict,
) -> None:
    """Do a claimed job's work under its lease and record how it ended.

    `expected`: errors whose message alone says enough. `last`: columns that are written with the last state.
    """
    collection = getattr(job, "collection", None)
    named = {"collection": collection.name} if collection is not None else {}
    with bound_contextvars(job=job.log_name, **named), Lease(job, stopping) as lease:
        logger.info("job begins")
        try:
            work(lease)
        except LeaseLost:
            give_back(job, **last())  # where this worker ends; what is cancelled or lost stays as it is
        except expected as error:
            finish(job, job.FAILED, error=" ".join(str(error).split()), **last())
        except Exception as error:
            logger.exception("%s failed", job)
            why = " ".join(f"Unexpected error: {error}".split())[:1000]
            finish(job, job.FAILED, error=why, **last())
        else:
            if lease.left:
                give_back(job, **last())
            else:
                finish(job, job.READY, **last())
        logger.info("job ends")
