"""Results too slow for a page: a worker computes and stores, pages read."""

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
Tell = Callable[[int, int, str], None]  # Told how much of how much is done, and what is done now.


def ignore_progress(done: int, total: int, phase: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True, slots=True)
class Result:
    """What is stored of a result. `values` None: it was not computed yet."""

    values: dict[str, Any] | None = None
    at: datetime | None = None  # The moment whose data they describe.
    job: BackgroundJob | None = None  # That computes it anew, or the last that did.
    failure: str = ""  # Why it could not be computed the last time.

    @property
    def is_in_progress(self) -> bool:
        """Return whether a worker is at it, or will be."""
        return self.job is not None and not self.job.is_over


@dataclass(frozen=True, slots=True)
class ResultKind:
    """A kind of result: how it is computed of a collection and options, and for how many options it is kept.

    `explain`: says in a line why it failed; without it what breaks a computation breaks its job.
    """

    name: str
    task: str  # The Celery task that computes it (jobs.tasks.register_result).
    table: Any  # A subclass of ResultRow that has a collection.
    compute: Callable[[Any, dict[str, Any], Tell], dict[str, Any]]
    keep: int = 1
    explain: Callable[[Exception], str] | None = None

    def read(self, collection: Any, **options: Any) -> Result:
        """Return what is stored. Two statements at most."""
        row = self._rows(collection).filter(key=key_of(options)).first()
        if row is None:
            return Result()
        return Result(row.values, row.at, background.last(self.task, row.pk), row.failure)

    def refresh(self, collection: Any, **options: Any) -> Result | None:
        """Compute it anew: return None where a worker does it, else what came of it."""
        # Where no worker would ever take it, the page waits for the result instead.
        if not workers.has_workers():
            return self.compute_now(collection, **options)
        background.enqueue(self.task, self._row(collection, options).pk)
        return None

    def compute_now(self, collection: Any, **options: Any) -> Result:
        """Compute and store it in this process, and return it."""
        row = self._row(collection, options)
        self.store(row)
        return Result(row.values, row.at, failure=row.failure)

    def recent(self, collection: Any, seconds: float, **options: Any) -> dict[str, Any]:
        """Return values that are at most so old, computed and stored now if need be."""
        row = self._rows(collection).filter(key=key_of(options)).first()
        if row is None or row.values is None or row.at < timezone.now() - timedelta(seconds=seconds):
            return self.compute_now(collection, **options).values or {}
        found: dict[str, Any] = row.values
        return found

    def store(self, row: Any, tell: Tell = ignore_progress) -> None:
        """Compute now and keep the values with their time, or why there are none where that is to be explained."""
        at = timezone.now()
        try:
            values = self.compute(row.collection, row.options, tell)
        except Exception as error:
            if self.explain is None:
                raise
            logger.exception("the %s of %s cannot be computed", self.name, row.collection)
            row.failure = self.explain(error)
            self._rows(row.collection).filter(pk=row.pk).update(failure=row.failure)
            return
        row.values, row.at, row.failure = values, at, ""
        self._rows(row.collection).filter(pk=row.pk).update(values=values, at=at, failure="")
        computed = self._rows(row.collection).filter(at__isnull=False)
        computed.exclude(pk__in=computed.order_by("-at").values("pk")[: self.keep]).delete()

    def _row(self, collection: Any, options: dict[str, Any]) -> Any:
        values = {"collection": collection, "kind": self.name, "options": options}
        return self._rows(collection).get_or_create(key=key_of(options), defaults=values)[0]

    def _rows(self, collection: Any) -> QuerySet[Any]:
        rows: QuerySet[Any] = self.table._default_manager.filter(collection=collection, kind=self.name)
        return rows


def key_of(options: dict[str, Any]) -> str:
    """Return a key that is the same for the same options, whatever the order of their names."""
    return sha256(json.dumps(options, sort_keys=True).encode()).hexdigest()
