"""Models of the work on aspects: drafts of passages, and a second person's blind weights."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from annotation.models import Membership
from corpus.models import Collection, Query, append_only
from corpus.models.aspects import AspectRevision


class PassageDraft(models.Model):
    """A text that may become a passage: a page fetched by a worker, or an uploaded file, which a person refines."""

    class State(models.TextChoices):
        WAITING = "waiting", _("waiting for a worker")
        FETCHING = "fetching", _("fetching")
        READY = "ready", _("to refine")
        FAILED = "failed", _("failed")
        USED = "used", _("saved as passage")
        DISMISSED = "dismissed", _("discarded")

    query = models.ForeignKey(Query, models.CASCADE, related_name="passage_drafts")
    asked_by = models.ForeignKey(Membership, models.CASCADE, related_name="passage_drafts", db_index=False)
    state = models.CharField(max_length=9, choices=State, default=State.WAITING)
    url = models.CharField(max_length=2000, blank=True, help_text="As requested; empty for a file.")
    final_url = models.CharField(max_length=2000, blank=True, help_text="After redirects.")
    file = models.CharField(max_length=255, blank=True, help_text="The uploaded file's name.")
    title = models.TextField(blank=True)
    text = models.TextField(blank=True, help_text="Without boilerplate; then as a person refined it.")
    sha256 = models.CharField(max_length=64, blank=True, help_text="Hash of the received bytes, in hex.")
    bytes = models.PositiveIntegerField(default=0, help_text="Received so far.")
    error = models.TextField(blank=True, help_text="Why there is no text, one line.")
    asked_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True)
    fetched_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.url or self.file} ({self.state})"


class BlindSample(models.Model):
    """A sample of queries whose aspects a second person weights blind (BRIGHT-Pro 3.3). Append-only."""

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="blind_samples")
    seed = models.IntegerField()
    # Revisions instead of queries, so that aspects are weighted as they were when the sample was drawn.
    revisions = ArrayField(models.BigIntegerField(), help_text="Ids of the AspectRevisions drawn, in their order.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        triggers = append_only.TRIGGERS

    def __str__(self) -> str:
        return f"{self.collection} sample {self.pk}"


class SecondReading(models.Model):
    """The importances that a second person gave to aspects of a sampled query. Append-only."""

    sample = models.ForeignKey(BlindSample, models.CASCADE, related_name="readings", db_index=False)
    revision = models.ForeignKey(AspectRevision, models.CASCADE, related_name="+", help_text="The set that was read.")
    reader = models.ForeignKey(Membership, models.CASCADE, related_name="second_readings")
    importances = models.JSONField(help_text="Aspect's id to importance.")
    comment = models.TextField(blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["sample", "revision"], name="second_reading_once")]
        triggers = append_only.TRIGGERS

    def __str__(self) -> str:
        return f"{self.revision_id} by {self.reader_id}"
