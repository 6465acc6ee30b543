"""Leases of jobs: claim, renew, report progress, finish and cancel (docs/operators.md).

The row in the database decides. Each function is one conditional UPDATE, which changes nothing for a worker
that has lost the job. The job of a killed worker is free again when its lease has expired.
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

# Claims without progress after which a job fails, since its workers seem to die of it.
MOST_ATTEMPTS = 5
PROGRESS_S = 0.5

Job = TypeVar("Job", bound=LeasedJob)
logger = logging.getLogger(__name__)


class LeaseLost(Exception):
    """The job was cancelled, or another worker has claimed it: this worker's result must not be stored."""


def free_jobs(model: type[Job], **only: Any) -> QuerySet[Job]:
    """Return jobs that wait or whose lease has expired. `only`: further conditions, as for `filter`."""
    rows: QuerySet[Job] = model._default_manager.filter(**only)
    return rows.filter(Q(state=model.WAITING) | Q(state=model.RUNNING, lease_until__lt=Now()))


def claim(model: type[Job], **only: Any) -> Job | None:
    """Claim the oldest free job; None where none is free."""
    with transaction.atomic():
        # skip_locked: workers do not wait for each other; no_key: rows that refer to the job can still be written.
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
    # Claimed too often without progress: the job fails, and the next one is claimed.
    values = {"attempts": MOST_ATTEMPTS, "said": job.last_log_line()}
    message = _("taken up %(attempts)s times without getting further")
    if values["said"]:
        message = _("taken up %(attempts)s times without getting further: %(said)s")
    finish(job, job.FAILED, error=message % values)
    return claim(model, **only)


def lease_end(model: type[LeasedJob]) -> Expression:
    """Return the end of a lease that begins or is renewed now, by the database's clock."""
    return ExpressionWrapper(Now() + timedelta(seconds=model.lease_seconds()), output_field=DateTimeField())


def held_row(job: LeasedJob) -> QuerySet[Any]:
    """Return the row of a job as a queryset, empty if the claim `job` has lost its lease."""
    rows = type(job)._default_manager.filter(pk=job.pk)
    return rows.filter(fencing_token=job.fencing_token, state=job.RUNNING)


def lock_held(job: LeasedJob) -> None:
    """Lock the row of a job until the transaction ends. Raises LeaseLost where its lease is lost."""
    if held_row(job).select_for_update(no_key=True).first() is None:
        raise LeaseLost(f"{job} was cancelled, or another worker has it")


def finish(job: LeasedJob, state: str, **changes: Any) -> bool:
    """Write the final state of a job. Return False where its lease is lost."""
    values = {"phase": "", "lease_until": None, "ended_at": Now(), **changes}
    return bool(held_row(job).update(state=state, **values))


def give_back(job: LeasedJob, **changes: Any) -> None:
    """Release a job for another worker, because this one is stopping; the claim is not counted."""
    values = {"phase": "", "lease_until": None, "attempts": max(0, job.attempts - 1), **changes}
    held_row(job).update(state=job.WAITING, **values)


def cancel(job: LeasedJob, **changes: Any) -> bool:
    """Cancel a job now: its worker notices the new fencing token and stops. Return False where it is over."""
    rows = type(job)._default_manager.filter(pk=job.pk, state__in=[job.WAITING, job.RUNNING])
    values = {"state": job.CANCELLED, "phase": "", "lease_until": None, "ended_at": Now(), **changes}
    return bool(rows.update(fencing_token=F("fencing_token") + 1, **values))


def ask_to_cancel(job: LeasedJob) -> bool:
    """Cancel a waiting job; let the worker of a running one save its results first. Return False where it is over."""
    rows = type(job)._default_manager.filter(pk=job.pk)
    if rows.filter(state=job.WAITING).update(state=job.CANCELLED, phase="", ended_at=Now()):
        return True
    return bool(rows.filter(state=job.RUNNING).update(cancel_asked=True))


def resume(job: LeasedJob, **changes: Any) -> bool:
    """Queue a cancelled or failed job again, with its results so far. Return False in any other state."""
    rows = type(job)._default_manager.filter(pk=job.pk, state__in=[job.CANCELLED, job.FAILED])
    values = {"attempts": 0, "error": "", "ended_at": None, "lease_until": None, "cancel_asked": False, **changes}
    return bool(rows.update(state=job.WAITING, **values))


class Lease:
    """A context manager that renews the lease of a claimed job. `should_stop`: whether this worker is stopping."""

    def __init__(self, job: LeasedJob, should_stop: Callable[[], bool] = lambda: False) -> None:
        self.job = job
        self.is_stopping = False
        self._should_stop = should_stop
        self._lost = threading.Event()
        self._over = threading.Event()
        self._reported = (0.0, "")
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
        """Return whether to stop the work, because the lease is lost or the worker stops. Once true, it stays true."""
        self.is_stopping = self.is_stopping or self.is_revoked() or self._should_stop()
        return self.is_stopping

    def progress(self, done: int, total: int, phase: str = "") -> None:
        """Write the job's progress: at most twice a second, but always at the start and end of a phase."""
        now = monotonic()
        if now - self._reported[0] < PROGRESS_S and done != total and phase == self._reported[1]:
            return
        self._reported = (now, phase)
        has_advanced = done > self.job.done
        self.renew(done=done, total=total, phase=phase, **({"attempts": 0} if has_advanced else {}))
        # `give_back` subtracts its claim from this number, which is 0 in the row now.
        if has_advanced:
            self.job.attempts = 0
        self.job.done, self.job.total, self.job.phase = done, total, phase

    def note(self, done: int, total: int, phase: str = "") -> None:
        """Note the progress inside a transaction or a COPY, for the thread that renews the lease to write."""
        self._noted = (done, total, phase)

    def renew(self, **changes: Any) -> bool:
        """Renew the lease, and write other columns with it. Return False where the lease is lost."""
        if not held_row(self.job).update(lease_until=lease_end(type(self.job)), **changes):
            self._lost.set()
        return not self.is_revoked()

    def _renew_until_over(self) -> None:
        # In a thread, since one step (an index over a million documents) may take longer than a lease.
        renewed = monotonic()
        try:
            while not self._over.wait(PROGRESS_S):
                noted, self._noted = self._noted, None
                if noted is None and monotonic() - renewed < self.job.lease_seconds() / 4:
                    continue
                renewed = monotonic()
                try:
                    self.progress(*noted) if noted else self.renew()
                except DatabaseError as error:  # The lease is still valid for a while: try again.
                    logger.warning("the lease of %s cannot be renewed: %s", self.job, error)
                    connection.close()
        finally:
            connection.close()


def perform(
    job: LeasedJob,
    work: Callable[[Lease], object],
    *,
    should_stop: Callable[[], bool] = lambda: False,
    expected: type[Exception] = LeaseLost,
    last: Callable[[], dict[str, Any]] = dict,
) -> None:
    """Do the work of a claimed job under its lease, and write its final state.

    `expected`: errors that are stored with their message and logged without a traceback. `last`: returns
    columns that are written with the final state.
    """
    collection = getattr(job, "collection", None)
    context = {"collection": collection.name} if collection is not None else {}
    with bound_contextvars(job=job.log_name, **context), Lease(job, should_stop) as lease:
        logger.info("job begins")
        try:
            work(lease)
        except LeaseLost:
            give_back(job, **last())  # Changes nothing where the job was cancelled or claimed by another worker.
        except expected as error:
            finish(job, job.FAILED, error=" ".join(str(error).split()), **last())
        except Exception as error:
            logger.exception("%s failed", job)
            message = " ".join(f"Unexpected error: {error}".split())[:1000]
            finish(job, job.FAILED, error=message, **last())
        else:
            if lease.is_stopping:
                give_back(job, **last())
            else:
                finish(job, job.READY, **last())
        logger.info("job ends")
