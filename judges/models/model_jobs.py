"""The columns of every job that calls models (judges.model_jobs)."""

from typing import Any, ClassVar

from django.db import models

from corpus.models import Collection
from jobs.models import LeasedJob


class ModelJob(LeasedJob):
    """A job that calls models about a collection. Its options, including limits, are in a JSON column."""

    collection: models.ForeignKey[Collection, Collection] = models.ForeignKey(
        Collection, models.CASCADE, related_name="%(class)ss"
    )
    campaign = models.BigIntegerField(null=True, help_text="Keeps its calls and what they cost; null: it asked nobody.")

    kept_in: ClassVar[str] = "options"  # The name of that column.

    class Meta:
        abstract = True

    @property
    def kept(self) -> dict[str, Any]:
        return getattr(self, self.kept_in)  # type: ignore[no-any-return]
