"""Models of the table of pairs: saved views, bulk acts and notes."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from annotation.models import User
from corpus.models import NUMBER, Collection, Numbered, Pair


class SavedView(models.Model):
    """Filters and order of the table of pairs that a person saved under a name in a collection."""

    user = models.ForeignKey(User, models.CASCADE, related_name="saved_views", db_index=False)
    collection = models.ForeignKey(Collection, models.CASCADE, related_name="saved_views", db_index=False)
    name = models.CharField(max_length=60)
    query = models.TextField(blank=True, help_text="The query string of annotation.data.pair_filters.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["collection", "user", "name"], name="saved_view_once")]

    def __str__(self) -> str:
        return self.name


class BulkAct(Numbered):
    """A bulk act on selected pairs: planned on one page, confirmed on the next, and undone with `changes`."""

    class Kind(models.TextChoices):
        SEND = "send", _("Send to people")
        REASSIGN = "reassign", _("Reassign")
        PRIORITY = "priority", _("Set priority")
        EXCLUDE = "exclude", _("Exclude judgments")
        REINSTATE = "reinstate", _("Reinstate judgments")
        LABEL = "label", _("Set label")
        EXPORT = "export", _("Export pairs")

    class State(models.TextChoices):
        PLANNED = "planned", _("not confirmed")
        DONE = "done", _("done")
        UNDONE = "undone", _("undone")

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="bulk_acts", db_index=False)
    kind = models.CharField(max_length=9, choices=Kind)
    state = models.CharField(max_length=7, choices=State, default=State.PLANNED)
    # Ids instead of a relation: a plan of 20,000 pairs is one row. Deleted pairs are left out.
    pairs = ArrayField(models.BigIntegerField(), help_text="Ids of the pairs as they were selected.")
    option = models.CharField(
        max_length=20,
        blank=True,
        help_text="The priority, the grade, the format of the file, or to whom: anyone, or a membership.",
    )
    note = models.TextField(blank=True, default="", db_default="", help_text="Comment of the judgments that it wrote.")
    affected = models.PositiveIntegerField(default=0, help_text="Pairs that the act changed, or exported.")
    changes = models.JSONField(default=dict, help_text="What undo needs (annotation.data.bulk.kinds).")
    made_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    created_at = models.DateTimeField(db_default=Now())
    done_at = models.DateTimeField(null=True)
    undone_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["collection", "-id"], name="bulk_act_newest")]
        triggers = [NUMBER]
        constraints = [models.UniqueConstraint(fields=["collection", "number"], name="bulk_act_number")]

    def __str__(self) -> str:
        return f"{self.kind} {len(self.pairs)} pairs ({self.state})"

    @property
    def size(self) -> int:
        """Number of pairs that were selected."""
        return len(self.pairs)


class PairNote(models.Model):
    """A note that an admin wrote on a pair, for the other admins."""

    pair = models.ForeignKey(Pair, models.CASCADE, related_name="notes")
    written_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    text = models.TextField()
    created_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"{self.pair_id}: {self.text[:40]}"
