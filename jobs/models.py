"""Models of long background work and of cached results, for all apps (docs/operators.md)."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy


class JobState(models.TextChoices):
    WAITING = "waiting", gettext_lazy("waiting")
    RUNNING = "running", gettext_lazy("running")
    READY = "ready", gettext_lazy("ready")
    FAILED = "failed", gettext_lazy("failed")
    CANCELLED = "cancelled", gettext_lazy("cancelled")


class LeasedJob(models.Model):
    """Base of jobs that workers do under a lease (jobs.leases): their state, progress and fencing token.

    Each claim raises the fencing token, and every write checks the token of its claim, so that a worker
    whose lease has expired changes nothing.
    """

    # The stored states; a subclass with other names for them overrides these.
    WAITING: ClassVar[str] = JobState.WAITING
    RUNNING: ClassVar[str] = JobState.RUNNING
    READY: ClassVar[str] = JobState.READY
    FAILED: ClassVar[str] = JobState.FAILED
    CANCELLED: ClassVar[str] = JobState.CANCELLED

    state = models.CharField(max_length=9, choices=JobState, default=JobState.WAITING)
    done = models.PositiveBigIntegerField(default=0)
    total = models.PositiveBigIntegerField(default=0)
    phase = models.CharField(max_length=200, blank=True, help_text="What it is doing now; done and total count that.")
    error = models.TextField(blank=True, help_text="Why it ended badly, one line.")
    attempts = models.PositiveSmallIntegerField(default=0, help_text="Claims since it last made progress.")
    fencing_token = models.PositiveIntegerField(default=0, help_text="Rises with every claim; older holders lose.")
    lease_until = models.DateTimeField(null=True, help_text="Renewed by its holder; after it anybody may claim it.")
    cancel_asked = models.BooleanField(default=False, help_text="Its holder saves what it has and ends it.")
    made_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True, help_text="The first claim.")
    ended_at = models.DateTimeField(null=True)

    class Meta:
        abstract = True

    @property
    def is_over(self) -> bool:
        return self.state not in (self.WAITING, self.RUNNING)

    @property
    def log_name(self) -> str:
        """Name of the job in log lines: its table and its number."""
        return f"{self._meta.label_lower}:{self.pk}"

    @classmethod
    def lease_seconds(cls) -> float:
        """Return the duration of a lease, unless it is renewed."""
        return float(settings.LEASE_SECONDS)

    def last_log_line(self) -> str:
        """Return the last line of the job's log, if it has one: why its workers may have died."""
        return ""


class BackgroundJob(LeasedJob):
    """Work on a row that has no lease columns. For each kind and subject at most one job waits or runs."""

    kind = models.CharField(max_length=60, help_text="Name of the Celery task that does it.")
    subject = models.BigIntegerField(help_text="Primary key of the row that it is about; the kind says of which table.")
    arguments = models.JSONField(default=dict)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "subject"],
                condition=models.Q(state__in=[JobState.WAITING, JobState.RUNNING]),
                name="background_job_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"


class ResultRow(models.Model):
    """Base of cached results (jobs.results). An app's model adds the `collection`."""

    kind = models.CharField(max_length=30)
    key = models.CharField(max_length=64, help_text="Of the options.")
    options = models.JSONField(default=dict)
    values = models.JSONField(null=True, help_text="Null: not computed yet.")
    at = models.DateTimeField(null=True, help_text="The moment whose data the values describe.")
    failure = models.TextField(blank=True, default="", db_default="", help_text="Why it failed last, one line.")

    class Meta:
        abstract = True
