"""Gates: verdicts on whether a new run may replace an old one."""

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy

from benchmark.models.hole_filling import Filling
from benchmark.models.runs import Run
from corpus.models import NUMBER, Collection, Numbered


class Gate(Numbered):
    """A verdict on a new run beside an old one; rows are only added, so that they are the gate's history."""

    class Verdict(models.TextChoices):
        PASS = "pass", gettext_lazy("pass")
        FAIL = "fail", gettext_lazy("fail")
        CANNOT_TELL = "cannot_tell", gettext_lazy("cannot tell")

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="gates")
    run = models.ForeignKey(Run, models.CASCADE, related_name="+")
    against = models.ForeignKey(Run, models.CASCADE, related_name="+")
    options = models.JSONField(default=dict, help_text="measures, max_drop, confidence, weights.")
    verdict = models.CharField(max_length=11, choices=Verdict)
    result = models.JSONField(default=dict, help_text="The document that the command `gate` prints.")
    filling = models.ForeignKey(
        Filling, models.SET_NULL, null=True, related_name="+", help_text="The judging of the pairs that decide."
    )
    made_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        triggers = [NUMBER]
        constraints = [models.UniqueConstraint(fields=["collection", "number"], name="gate_number")]

    def __str__(self) -> str:
        return f"gate {self.number}: {self.verdict}"
