"""Taking up what is to be made: a fence and a lease, so that work is safe to take up twice (MECHANICS M3).

The row is the truth. A holder renews its lease from a thread of its own, because one step of a maker (an index over a
million documents) may take longer than any lease; a killed holder's row is free when its lease is over.
"""

import logging
import threading
from datetime import timedelta
from time import monotonic
from types import TracebackType
from typing import Any, TypeVar

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from benchmark.models import Made, Progress
from corpus.errors import QuorumError

MOST_CLAIMS = 5
"""Times that something is taken up without getting further: then whoever takes it up dies of it."""
TELL_S = 0.5

Row = TypeVar("Row", bound=Made)
logger = logging.getLogger(__name__)


class Lost(QuorumError):
    """Somebody cancelled it, or another worker has taken it up: what this one makes is not wanted any more."""


def free(model: type[Row]) -> QuerySet[Row]:
    """What waits, and what nobody holds any more."""
    rows: QuerySet[Row] = model._default_manager.all()
    return rows.filter(Q(state=Progress.WAITING) | Q(state=Progress.RUNNING, lease_until__lt=Now()))


def claim(model: type[Row], key: int | None = None) -> Row | None:
    """The oldest that is free, or the one with this primary key; None: there is nothing to take up."""
    one = "AND id = %(key)s" if key is not None else ""
    table = model._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(
            f"""UPDATE {table} SET state = 'running', fence = fence + 1, claims = claims + 1, error = '',
                       lease_until = now() + make_interval(secs => %(lease)s)
                WHERE id = (SELECT id FROM {table}
                            WHERE (state = 'waiting' OR (state = 'running' AND lease_until < now())) {one}
                            ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)
                RETURNING id""",
            {"lease": settings.LEASE_SECONDS, "key": key},
        )
        found = cursor.fetchone()
    if found is None:
        return None
    row: Row = model._default_manager.select_related("collection").get(pk=found[0])
    if row.claims > MOST_CLAIMS:
        end(row, Progress.FAILED, error=f"taken up {MOST_CLAIMS} times without getting further")
        return claim(model, key)
    return row


def held(row: Made) -> QuerySet[Any]:
    """The row, as long as whoever claimed it as `row` holds it."""
    return type(row)._default_manager.filter(pk=row.pk, fence=row.fence, state=Progress.RUNNING)


def end(row: Made, state: Progress, **changes: Any) -> bool:
    """The last word, by whoever holds it; False when that is somebody else by now."""
    values = {"phase": "", "lease_until": None, "ended_at": timezone.now(), **changes}
    return bool(held(row).update(state=state, **values))


def give_back(row: Made, **changes: Any) -> None:
    """The worker ends: another goes on, and the claim does not count."""
    values = {"phase": "", "lease_until": None, "claims": max(0, row.claims - 1), **changes}
    held(row).update(state=Progress.WAITING, **values)


def cancel(row: Made, **changes: Any) -> bool:
    """End it now: whoever works on it finds the fence moved, and stops. False when it is over already."""
    rows = type(row)._default_manager.filter(pk=row.pk, state__in=[Progress.WAITING, Progress.RUNNING])
    values = {"state": Progress.CANCELLED, "phase": "", "lease_until": None, "ended_at": timezone.now(), **changes}
    return bool(rows.update(fence=F("fence") + 1, **values))


def go_on(row: Made) -> bool:
    """Let it wait again after a cancellation or a failure; what was made stays. False in any other state."""
    rows = type(row)._default_manager.filter(pk=row.pk, state__in=[Progress.CANCELLED, Progress.FAILED])
    return bool(rows.update(state=Progress.WAITING, claims=0, error="", ended_at=None))


class Hold:
    """`with Hold(row) as hold:` renews the lease of a claimed row until the block ends."""

    def __init__(self, row: Made) -> None:
        self.row = row
        self._lost = threading.Event()
        self._over = threading.Event()
        self._told = (0.0, "")
        self._thread = threading.Thread(target=self._renew, name="lease", daemon=True)

    def __enter__(self) -> "Hold":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def lost(self) -> bool:
        """It was cancelled, or is somebody else's."""
        return self._lost.is_set()

    def progress(self, done: int, total: int, phase: str = "") -> None:
        """How far it is; written twice a second at most, and at once at the end of a phase and at a new one's start."""
        now = monotonic()
        if now - self._told[0] < TELL_S and done < total and phase == self._told[1]:
            return
        self._told = (now, phase)
        further = {"claims": 0} if done > self.row.done else {}
        if not held(self.row).update(done=done, total=total, phase=phase, **further):
            self._lost.set()
        self.row.done, self.row.total, self.row.phase = done, total, phase

    def _renew(self) -> None:
        try:
            while not self._over.wait(settings.LEASE_SECONDS / 4):
                try:
                    until = timezone.now() + timedelta(seconds=settings.LEASE_SECONDS)
                    if not held(self.row).update(lease_until=until):
                        self._lost.set()
                except DatabaseError as error:  # the next try may find it; until then the lease holds
                    logger.warning("the lease of %s cannot be renewed: %s", self.row, error)
                    connection.close()
        finally:
            connection.close()
