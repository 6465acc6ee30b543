"""Exports with their options and files, and lists of queries that are kept out of training."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy

from annotation.models import User
from corpus.models import NUMBER, Collection, Numbered
from store.paths import VarPathField, VarPathsJSONField


class SnapshotState(models.TextChoices):
    MAKING = "making", gettext_lazy("in progress")
    READY = "ready", gettext_lazy("ready")
    FAILED = "failed", gettext_lazy("failed")


class Snapshot(Numbered):
    """An export, finished or in progress: its options, manifest and folder."""

    State = SnapshotState

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="snapshots")
    format = models.CharField(max_length=30)
    options = VarPathsJSONField(default=dict)
    manifest = models.JSONField(default=dict)
    folder = VarPathField(max_length=500)
    state = models.CharField(max_length=6, choices=State, default=State.READY)
    error = models.TextField(blank=True, help_text="Why it failed, one line.")
    made_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now(), help_text="The moment whose data it contains.")

    class Meta:
        indexes = [models.Index(fields=["collection", "-created_at"], name="snapshot_newest")]
        constraints = [models.UniqueConstraint(fields=["collection", "number"], name="snapshot_number")]
        triggers = [NUMBER]

    def __str__(self) -> str:
        return f"{self.collection} {self.format} {self.number}"


class QuerySplit(models.Model):
    """A named list of query ids that form a split, such as fixed test queries."""

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="query_splits", db_index=False)
    name = models.SlugField(max_length=40, db_index=False)
    query_ids = ArrayField(models.TextField(), help_text="Ids of queries, sorted by their bytes.")
    made_by = models.CharField(max_length=150, blank=True)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["collection", "name"], name="query_split_once")]

    def __str__(self) -> str:
        return f"{self.collection_id} {self.name}"
