"""Training jobs and the models that they published. One job is one row and one subprocess (DESIGN 9)."""

from typing import Any

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from corpus.models import Collection


class Job(models.Model):
    """Something for the GPU queue: a training, or scoring with a model. Its folder holds everything else."""

    class Kind(models.TextChoices):
        TRAIN = "train", gettext_lazy("training")
        EVALUATE = "evaluate", gettext_lazy("evaluation")
        RERANK = "rerank", gettext_lazy("reranking")
        ORDER = "order", gettext_lazy("ordering the queue")
        GENERATE = "generate", gettext_lazy("writing")

    class State(models.TextChoices):
        QUEUED = "queued", gettext_lazy("waiting")
        RUNNING = "running", gettext_lazy("running")
        FINISHED = "finished", gettext_lazy("finished")
        FAILED = "failed", gettext_lazy("failed")
        CANCELLED = "cancelled", gettext_lazy("cancelled")
        REFUSED = "refused", gettext_lazy("refused")

    collection = models.ForeignKey(Collection, models.CASCADE, null=True, related_name="training_jobs")
    kind = models.CharField(max_length=10, choices=Kind, default=Kind.TRAIN)
    options = models.JSONField(default=dict, help_text="What the subprocess is asked, as in job.json.")
    device = models.CharField(max_length=4, default="cpu", help_text="cpu or cuda.")
    folder = models.CharField(max_length=500)
    state = models.CharField(max_length=9, choices=State, default=State.QUEUED)
    phase = models.CharField(max_length=200, blank=True)
    words = models.CharField(max_length=50, blank=True, help_text="What stands beside its figures: tiny model, CPU.")
    steps = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    error = models.TextField(blank=True, help_text="Why it ended badly, one line.")
    result = models.JSONField(default=dict)
    is_stopping = models.BooleanField(default=False, help_text="Somebody asked it to end.")
    claims = models.PositiveSmallIntegerField(default=0, help_text="Times that somebody took it up.")
    fence = models.PositiveIntegerField(default=0, help_text="Goes up with every claim; an older holder is ignored.")
    lease_until = models.DateTimeField(null=True)
    made_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["collection", "-id"], name="job_newest"),
            models.Index(fields=["id"], name="job_waiting", condition=Q(state__in=["queued", "running"])),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"

    @property
    def is_over(self) -> bool:
        """Nothing more comes by itself."""
        return self.state not in (Job.State.QUEUED, Job.State.RUNNING)

    @property
    def verdict(self) -> str:
        """Whether a training gained anything, in words."""
        return verdict(self.result)


class Model(models.Model):
    """A model folder that a training published."""

    collection = models.ForeignKey(Collection, models.CASCADE, null=True, related_name="trained_models")
    job = models.OneToOneField(Job, models.CASCADE, related_name="model")
    name = models.CharField(max_length=100)
    recipe = models.CharField(max_length=30)
    base = models.CharField(max_length=300)
    folder = models.CharField(max_length=500)
    words = models.CharField(max_length=50, blank=True)
    summary = models.JSONField(default=dict, help_text="Evaluation, calibration, gain and checkpoint, as published.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["collection", "name"], name="model_name")]

    def __str__(self) -> str:
        return self.name

    @property
    def verdict(self) -> str:
        """Whether it gained anything, in words."""
        return verdict(self.summary)


def verdict(found: dict[str, Any]) -> str:
    """The sentence of training.gains, or that there is none."""
    return str((found.get("gain") or {}).get("words") or _("not measured: there is no dev split"))
