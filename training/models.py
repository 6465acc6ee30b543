"""Training jobs, the models that they published, and learning curves."""

from pathlib import Path
from typing import Any, ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from corpus.models import NUMBER, Collection, Numbered
from jobs.models import LeasedJob
from store.paths import VarPathField, VarPathsJSONField
from training.recipes.job_folder import JobFolder


class Job(Numbered, LeasedJob):
    """A job of the GPU queue, a training or a use of a model, done by a subprocess in the job's folder."""

    class Kind(models.TextChoices):
        TRAIN = "train", gettext_lazy("training")
        EVALUATE = "evaluate", gettext_lazy("evaluation")
        RERANK = "rerank", gettext_lazy("reranking")
        ORDER = "order", gettext_lazy("queue reordering")
        GENERATE = "generate", gettext_lazy("writing")
        LOSSES = "losses", gettext_lazy("comparison of losses")

    class State(models.TextChoices):
        QUEUED = "queued", gettext_lazy("waiting")
        RUNNING = "running", gettext_lazy("running")
        FINISHED = "finished", gettext_lazy("finished")
        FAILED = "failed", gettext_lazy("failed")
        CANCELLED = "cancelled", gettext_lazy("cancelled")
        REFUSED = "refused", gettext_lazy("refused")

    WAITING: ClassVar[str] = State.QUEUED
    READY: ClassVar[str] = State.FINISHED

    collection = models.ForeignKey(Collection, models.CASCADE, null=True, related_name="training_jobs")
    kind = models.CharField(max_length=10, choices=Kind, default=Kind.TRAIN)
    options = VarPathsJSONField(default=dict, help_text="What the subprocess is asked, as in job.json.")
    device = models.CharField(max_length=4, default="cpu", help_text="cpu or cuda.")
    folder = VarPathField(max_length=500)
    state = models.CharField(max_length=9, choices=State, default=State.QUEUED)
    words = models.CharField(max_length=50, blank=True, help_text="What stands beside its figures: tiny model, CPU.")
    result = VarPathsJSONField(default=dict)

    class Meta:
        indexes = [
            models.Index(fields=["collection", "-id"], name="job_newest"),
            models.Index(fields=["id"], name="job_waiting", condition=Q(state__in=["queued", "running"])),
        ]
        constraints = [
            models.UniqueConstraint(fields=["collection", "number"], nulls_distinct=False, name="job_number")
        ]
        triggers = [NUMBER]

    def __str__(self) -> str:
        return f"{self.kind} {self.number}"

    @classmethod
    def lease_seconds(cls) -> float:
        """Return a shorter lease than other jobs have, since a supervisor of a subprocess can always renew in time."""
        return 30.0

    def last_log_line(self) -> str:
        """Return the last line of the job's log."""
        return JobFolder(Path(self.folder)).last_log_line()

    @property
    def verdict(self) -> str:
        """A sentence about the gain of the training."""
        return verdict_sentence(self.result)


class Model(models.Model):
    """A model that a training published."""

    collection = models.ForeignKey(Collection, models.CASCADE, null=True, related_name="trained_models")
    job = models.OneToOneField(Job, models.CASCADE, related_name="model")
    name = models.CharField(max_length=100)
    recipe = models.CharField(max_length=30)
    base = VarPathField(max_length=300)
    folder = VarPathField(max_length=500)
    words = models.CharField(max_length=50, blank=True)
    summary = VarPathsJSONField(default=dict, help_text="Evaluation, calibration, gain and checkpoint, as published.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["collection", "name"], name="model_name")]

    def __str__(self) -> str:
        return self.name

    @property
    def verdict(self) -> str:
        """A sentence about the gain of the training."""
        return verdict_sentence(self.summary)


class LearningCurve(Numbered):
    """The same training on growing subsets of one set. The options are in the jobs of its points."""

    class Order(models.TextChoices):
        TIME = "time", gettext_lazy("time of labelling")
        RANDOM = "random", gettext_lazy("random")

    collection = models.ForeignKey(Collection, models.CASCADE, null=True, related_name="learning_curves")
    recipe = models.CharField(max_length=30)
    order = models.CharField(max_length=6, choices=Order, default=Order.TIME)
    # A path given to a command, not below VAR, so that it is not part of a backup.
    out = models.CharField(max_length=500, blank=True, help_text="Where a command writes; empty: started on a page.")
    made_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        triggers = [NUMBER]
        constraints = [
            models.UniqueConstraint(fields=["out"], condition=~Q(out=""), name="learning_curve_out"),
            models.UniqueConstraint(
                fields=["collection", "number"], name="learning_curve_number", nulls_distinct=False
            ),
        ]

    def __str__(self) -> str:
        return f"curve {self.number}"


class CurvePoint(models.Model):
    """A training of a curve: the requested number of labels, and that of the whole queries closest to it.

    The job chooses the queries, so `labels` and `queries` are unknown until it has finished.
    """

    curve = models.ForeignKey(LearningCurve, models.CASCADE, related_name="points")
    job = models.OneToOneField(Job, models.CASCADE, related_name="curve_point")
    asked = models.PositiveIntegerField()
    labels = models.PositiveIntegerField(null=True)
    queries = models.PositiveIntegerField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["curve", "asked"], name="curve_point_once")]

    def __str__(self) -> str:
        return f"{self.size} labels"

    @property
    def size(self) -> int:
        """The number of labels in the training; until it is known, the requested number."""
        return self.asked if self.labels is None else self.labels


def verdict_sentence(result: dict[str, Any]) -> str:
    """Return the verdict of training.jobs.significance in a result, or a sentence that there is none."""
    return str((result.get("gain") or {}).get("words") or _("not measured (no dev split)"))
