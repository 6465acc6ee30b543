"""Suites: collections that are measured together."""

from django.db import models
from django.db.models.functions import Now

from benchmark.models.runs import RUN_NAME
from corpus.models import Collection


class Suite(models.Model):
    """Collections that are measured together, with a column each and their unweighted mean."""

    name = models.CharField(max_length=63, unique=True, validators=[RUN_NAME])
    title = models.CharField(max_length=200, blank=True)
    made_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return self.name


class SuiteMember(models.Model):
    """A collection of a suite; `place` orders the columns."""

    suite = models.ForeignKey(Suite, models.CASCADE, related_name="members", db_index=False)
    collection = models.ForeignKey(Collection, models.CASCADE, related_name="suite_memberships")
    place = models.PositiveSmallIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["suite", "collection"], name="suite_member_once")]

    def __str__(self) -> str:
        return f"{self.suite_id}: {self.collection_id}"
