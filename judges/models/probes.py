"""Results of `check_judges`, append-only, so that a judge's history can be read."""

from django.db import models
from django.db.models.functions import Now

from corpus.models import append_only
from judges.models import JudgeVersion


class JudgeProbe(models.Model):
    """A check of a judge's version."""

    judge = models.ForeignKey(JudgeVersion, models.PROTECT, related_name="probes")
    passes = models.BooleanField(help_text="It can be asked as its version says.")
    problem = models.TextField(blank=True, help_text="Why it cannot work, and what to do about it.")
    warnings = models.JSONField(default=list, help_text="What works now and may not later.")
    found = models.JSONField(default=dict, help_text="What it can do: judges.probes.checks.")
    calls = models.PositiveSmallIntegerField(default=0)
    cost = models.FloatField(null=True, help_text="USD; null: unknown.")
    seconds = models.FloatField(default=0.0, help_text="Of the first call.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        triggers = append_only.TRIGGERS

    def __str__(self) -> str:
        return f"{self.judge_id}: {'passes' if self.passes else self.problem}"
