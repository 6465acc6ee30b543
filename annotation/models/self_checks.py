"""Results of self-checks: whether a judge grades documents in their known order."""

from django.db import models
from django.db.models.functions import Now

from corpus.models import Collection, append_only
from judges.models import JudgeVersion


class SelfCheck(models.Model):
    """A judge's self-check on documents of known order. Append-only; the newest is current."""

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="self_checks", db_index=False)
    judge = models.ForeignKey(JudgeVersion, models.PROTECT, related_name="self_checks")
    passes = models.BooleanField()
    findings = models.JSONField(help_text="judges.probes.known_orders.Findings, calls, cost, the first error.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [models.Index(fields=["collection", "judge", "-id"], name="self_check_newest")]
        triggers = append_only.TRIGGERS

    def __str__(self) -> str:
        return f"{self.judge_id}: {'passes' if self.passes else 'fails'}"
