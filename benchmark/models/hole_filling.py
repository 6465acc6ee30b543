"""Hole filling: a pool of runs, the judging of its unjudged pairs, and the filled qrels."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy

from benchmark.models.qrels import Qrels
from benchmark.models.runs import Run
from corpus.models import NUMBER, Collection, Numbered


class Filling(Numbered):
    """A filling: the pool of runs, the judging of its unjudged pairs, and the qrels before and after."""

    class State(models.TextChoices):
        PREPARING = "preparing", gettext_lazy("preparing")  # A worker writes its pairs.
        JUDGING = "judging", gettext_lazy("being judged")
        PEOPLE = "people", gettext_lazy("waiting for people")
        FINISHING = "finishing", gettext_lazy("finishing")  # A worker makes the filled version.
        FILLED = "filled", gettext_lazy("filled")
        CANCELLED = "cancelled", gettext_lazy("cancelled")

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="fillings")
    runs = models.ManyToManyField(Run, related_name="fillings")
    depth = models.PositiveIntegerField()
    before = models.ForeignKey(Qrels, models.CASCADE, related_name="+")
    after = models.OneToOneField(Qrels, models.SET_NULL, null=True, related_name="filling")
    campaign = models.BigIntegerField(null=True, help_text="Null: people judge every pair.")
    pairs = ArrayField(models.BigIntegerField(), default=list, help_text="Ids of the pairs that it asks about.")
    state = models.CharField(max_length=9, choices=State, default=State.JUDGING)
    options = models.JSONField(
        default=dict, help_text="policy, panel, filters, limits; first: so many of the pool; finished_by."
    )
    funnel = models.JSONField(default=dict, help_text="Counts by step: docs/workshop.md.")
    error = models.TextField(blank=True, help_text="Why it could not be prepared or finished, one line.")
    looked_at = models.DateTimeField(null=True, help_text="When a worker last looked how far it is.")
    made_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)

    class Meta:
        triggers = [NUMBER]
        constraints = [models.UniqueConstraint(fields=["collection", "number"], name="filling_number")]

    def __str__(self) -> str:
        return f"{self.collection_id} filling {self.number}"

    @property
    def is_over(self) -> bool:
        """Return whether the filling has ended."""
        return self.state in (self.State.FILLED, self.State.CANCELLED)

    @property
    def needs_worker(self) -> bool:
        """Return whether the filling waits for a worker to prepare or finish it."""
        return self.state in (self.State.PREPARING, self.State.FINISHING)
