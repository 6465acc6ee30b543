"""Cached results that are too slow for a request: workers compute and store them, pages read them."""

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from jobs import background, workers
from jobs.models import BackgroundJob

logger = logging.getLogger(__name__)
ProgressCallback = Callable[[int, int, str], None]  # Called with the work done, the total, and the phase.


def ignore_progress(done: int, total: int, phase: str) -> None:
    """Do not report progress."""


@dataclass(frozen=True, slots=True)
class Result:
    """A stored result. `values` None: it was not computed yet."""

    values: dict[str, Any] | None = None
    at: datetime | None = None  # The moment whose data they describe.
    job: BackgroundJob | None = None  # The job that computes it now, or the last one that did.
    failure: str = ""  # Why the last computation failed.

    @property
    def is_in_progress(self) -> bool:
        """Return whether a job computes it or waits to do so."""
        return self.job is not None and not self.job.is_over


@dataclass(frozen=True, slots=True)
class ResultKind:
    """A kind of result: how it is computed from a collection and options, and how many results are kept.

    `explain`: returns a line about an error, which is stored; without it, an error fails the job.
    """

    name: str
    task: str  # The Celery task that computes it (jobs.tasks.register_result).
    table: Any  # A subclass of ResultRow that has a collection.
    compute: Callable[[Any, dict[str, Any], ProgressCallback], dict[str, Any]]
    keep: int = 1
    explain: Callable[[Exception], str] | None = None

    def read(self, collection: Any, **options: Any) -> Result:
        """Return the stored result, in at most two statements."""
        row = self._rows(collection).filter(key=key_of(options)).first()
        if row is None:
            return Result()
        return Result(row.values, row.at, background.last(self.task, row.pk), row.failure)

    def refresh(self, collection: Any, **options: Any) -> Result | None:
        """Compute the result again: return None where a worker will, else the new result."""
        # Without a worker it is computed in the request.
        if not workers.has_workers():
            return self.compute_now(collection, **options)
        background.enqueue(self.task, self._row(collection, options).pk)
        return None

    def compute_now(self, collection: Any, **options: Any) -> Result:
        """Compute, store and return the result in this process."""
        row = self._row(collection, options)
        self.store(row)
        return Result(row.values, row.at, failure=row.failure)

    def recent(self, collection: Any, seconds: float, **options: Any) -> dict[str, Any]:
        """Return values that are at most `seconds` old, computed and stored now if necessary."""
        row = self._rows(collection).filter(key=key_of(options)).first()
        if row is None or row.values is None or row.at < timezone.now() - timedelta(seconds=seconds):
            return self.compute_now(collection, **options).values or {}
        values: dict[str, Any] = row.values
        return values

    def store(self, row: Any, progress: ProgressCallback = ignore_progress) -> None:
        """Compute now, and store the values with their time, or the explanation of an error."""
        at = timezone.now()
        try:
            values = self.compute(row.collection, row.options, progress)
        except Exception as error:
            if self.explain is None:
                raise
            logger.exception("the %s of %s cannot be computed", self.name, row.collection)
            row.failure = self.explain(error)
            self._rows(row.collection).filter(pk=row.pk).update(failure=row.failure)
            return
        row.values, row.at, row.failure = values, at, ""
        self._rows(row.collection).filter(pk=row.pk).update(values=values, at=at, failure="")
        # Only the newest `keep` results stay.
        computed = self._rows(row.collection).filter(at__isnull=False)
        computed.exclude(pk__in=computed.order_by("-at").values("pk")[: self.keep]).delete()

    def _row(self, collection: Any, options: dict[str, Any]) -> Any:
        values = {"collection": collection, "kind": self.name, "options": options}
        return self._rows(collection).get_or_create(key=key_of(options), defaults=values)[0]

    def _rows(self, collection: Any) -> QuerySet[Any]:
        rows: QuerySet[Any] = self.table._default_manager.filter(collection=collection, kind=self.name)
        return rows


def key_of(options: dict[str, Any]) -> str:
    """Return a key for options that does not depend on the order of their names."""
    return sha256(json.dumps(options, sort_keys=True).encode()).hexdigest()
