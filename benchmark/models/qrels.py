"""Versions of a collection's qrels."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy

from corpus.models import Collection, Query


class Qrels(models.Model):
    """A version of a collection's qrels. A version never changes: filling makes a new one."""

    class Kind(models.TextChoices):
        ORIGINAL = "original", gettext_lazy("original")  # The reference grades that were imported.
        FILLED = "filled", gettext_lazy("filled")
        IMPORTED = "imported", gettext_lazy("imported")
        LABELS = "labels", gettext_lazy("all labels")

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="qrels_versions", db_index=False)
    number = models.PositiveIntegerField(help_text="From 1 in each collection.")
    kind = models.CharField(max_length=8, choices=Kind)
    note = models.CharField(max_length=200, blank=True)
    parent = models.ForeignKey("self", models.CASCADE, null=True, related_name="children", help_text="Filled from it.")
    counts = models.JSONField(default=dict, help_text="queries, judged, relevant, and origins {origin: n}.")
    content_hash = models.CharField(max_length=64, blank=True, default="", help_text="sha256 of its rows, in hex.")
    made_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name_plural = "qrels"
        constraints = [models.UniqueConstraint(fields=["collection", "number"], name="qrels_number")]

    def __str__(self) -> str:
        return f"{self.collection_id} qrels {self.number}"


class QrelsRow(models.Model):
    """The grades of one query in a version of the qrels, documents ascending by primary key."""

    qrels = models.ForeignKey(Qrels, models.CASCADE, related_name="rows", db_index=False)
    query = models.ForeignKey(Query, models.CASCADE, db_constraint=False, related_name="+")
    documents = ArrayField(models.BigIntegerField(), help_text="Primary keys.")
    grades = ArrayField(models.SmallIntegerField())
    origins = ArrayField(models.CharField(max_length=20), help_text="original, a policy's name, people, adjudicator.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["qrels", "query"], name="qrels_row_once")]

    def __str__(self) -> str:
        return f"{self.qrels_id}/{self.query_id}"
