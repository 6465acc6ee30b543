"""The columns of every job that asks models (judges.model_jobs)."""

from typing import Any, ClassVar

from django.db import models

from corpus.models import Collection
from jobs.models import LeasedJob


class ModelJob(LeasedJob):
    """A job that asks models about a collection; its options, limits among them, stand in a JSON column."""

    collection: models.ForeignKey[Collection, Collection] = models.ForeignKey(
        Collection, models.CASCADE, related_name="%(class)ss"
    )
    campaign = models.BigIntegerField(null=True, help_text="Keeps its calls and what they cost; null: it asked nobody.")

    kept_in: ClassVar[str] = "options"  # The column.

    class Meta:
        abstract = True

    @property
    def kept(self) -> dict[str, Any]:
        return getattr(self, self.kept_in)  # type: ignore[no-any-return]
