"""Answers of judges to canaries, which are append-only, and the schedule of the next round."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from corpus.models import append_only
from judges.models import Attempt, JudgeVersion, PromptVersion


class CanaryRound(models.Model):
    """A round in which canaries were sent to judges."""

    class By(models.TextChoices):
        COMMAND = "command", gettext_lazy("command")
        PAGE = "page", gettext_lazy("page")
        SCHEDULE = "schedule", gettext_lazy("schedule")

    panel = models.CharField(max_length=100)
    by = models.CharField(max_length=8, choices=By)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        triggers = append_only.TRIGGERS

    def __str__(self) -> str:
        return f"round {self.pk}"


class CanaryAnswer(models.Model):
    """The answer of one judge to one canary."""

    round = models.ForeignKey(CanaryRound, models.PROTECT, related_name="answers")
    judge = models.ForeignKey(JudgeVersion, models.PROTECT, related_name="canaries", db_index=False)
    prompt = models.ForeignKey(PromptVersion, models.PROTECT)
    name = models.CharField(max_length=60, help_text="Of the question (judges.probes.canary_texts).")
    twin = models.CharField(max_length=60, blank=True, help_text="The clean question beside it; blank: this is one.")
    kind = models.CharField(max_length=40, blank=True, help_text="Of the hostile text.")
    aim = models.SmallIntegerField(null=True, help_text="0 or 1: the verdict that the hostile text wants.")
    honest = models.SmallIntegerField(help_text="0 or 1: the verdict of an honest judge.")
    role = models.CharField(max_length=7)
    outcome = models.CharField(max_length=12, choices=Attempt.Outcome)
    verdict = models.SmallIntegerField(null=True)
    reason = models.TextField(blank=True)
    error = models.TextField(blank=True)
    tokens_in = models.PositiveIntegerField(default=0)
    tokens_out = models.PositiveIntegerField(default=0)
    cost = models.FloatField(null=True, help_text="USD; null: the price is unknown.")
    milliseconds = models.PositiveIntegerField(default=0)
    raw = models.BinaryField(help_text="zlib of the raw response body, as it came.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["judge", "round", "name"], name="canary_once")]
        triggers = append_only.TRIGGERS

    def __str__(self) -> str:
        return f"{self.judge_id} {self.name}: {self.outcome}"


class CanarySchedule(models.Model):
    """The only row of the canary schedule. Paid judges take part only if `paid` is set."""

    panel = models.CharField(max_length=100, blank=True, help_text="Blank: the default panel of that time.")
    hours = models.PositiveIntegerField(default=24, help_text="0: never.")
    paid = models.BooleanField(default=False)
    due_at = models.DateTimeField()

    class Meta:
        constraints = [models.CheckConstraint(name="canary_schedule_one", condition=Q(pk=1))]

    def __str__(self) -> str:
        return _("every %(hours)s h") % {"hours": self.hours}
