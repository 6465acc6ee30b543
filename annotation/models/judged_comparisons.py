"""Comparisons by model judges: the job, and each judge's answers about both orders of the documents."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from annotation.models.comparisons import Comparison, ComparisonSet, Preference
from corpus.models import NUMBER, Assessor, Numbered, append_only
from judges.models.model_jobs import ModelJob


class ComparisonJudging(Numbered, ModelJob):
    """A job in which model judges compare the documents of a set."""

    set = models.ForeignKey(ComparisonSet, models.CASCADE, related_name="judgings")
    options = models.JSONField(default=dict, help_text="set (its number), judges, versions, budget, max_calls.")
    key = models.CharField(max_length=64, help_text="sha256 of the set and the judges, in hex.")

    class Meta:
        triggers = [NUMBER]
        constraints = [
            models.UniqueConstraint(fields=["collection", "key"], name="comparison_judging_once"),
            models.UniqueConstraint(fields=["collection", "number"], name="comparison_judging_number"),
        ]

    def __str__(self) -> str:
        return f"{self.collection_id} comparisons by judges {self.number}"


class JudgedComparison(models.Model):
    """A judge's answers about a comparison; its preference is what both say. Append-only."""

    comparison = models.ForeignKey(Comparison, models.CASCADE, related_name="judged", db_index=False)
    assessor = models.ForeignKey(Assessor, models.PROTECT, related_name="+", help_text="The judge's version.")
    forward = models.CharField(
        max_length=8, choices=Preference.Outcome, blank=True, help_text="With the first document as A."
    )
    backward = models.CharField(
        max_length=8, choices=Preference.Outcome, blank=True, help_text="With the second document as A."
    )
    problem = models.TextField(blank=True, help_text="Why an order has no answer; then the judge has no preference.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["comparison", "assessor"], name="judged_comparison_once"),
            models.CheckConstraint(
                name="judged_comparison_answered",
                condition=~Q(problem="") | ~Q(forward="") & ~Q(backward=""),
            ),
        ]
        triggers = append_only.TRIGGERS

    def __str__(self) -> str:
        return f"{self.comparison_id} by {self.assessor_id}"
