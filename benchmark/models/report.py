"""Reports on runs under two versions of the qrels."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from benchmark.models.qrels import Qrels
from benchmark.models.runs import Run
from corpus.models import NUMBER, Collection, Numbered
from jobs.models import LeasedJob


class Report(Numbered, LeasedJob):
    """A report on runs under two versions of the qrels, computed once for the same runs and versions."""

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="reports")
    before = models.ForeignKey(Qrels, models.CASCADE, related_name="+")
    after = models.ForeignKey(Qrels, models.CASCADE, related_name="+")
    key = models.CharField(max_length=64, help_text="sha256 of all that it depends on.")
    options = models.JSONField(default=dict, help_text="runs (ids), k, seed.")
    result = models.JSONField(null=True, help_text="By system and over all; docs/workshop.md.")

    class Meta:
        triggers = [NUMBER]
        constraints = [
            models.UniqueConstraint(fields=["collection", "key"], name="report_once"),
            models.UniqueConstraint(fields=["collection", "number"], name="report_number"),
        ]

    def __str__(self) -> str:
        return f"{self.collection_id} report {self.number}"


class ReportValues(models.Model):
    """The values of one run and measure by query, in the order of the report's queries."""

    report = models.ForeignKey(Report, models.CASCADE, related_name="values", db_index=False)
    run = models.ForeignKey(Run, models.CASCADE, related_name="+")
    measure = models.CharField(max_length=40)
    before = ArrayField(models.FloatField())
    after = ArrayField(models.FloatField())

    class Meta:
        verbose_name_plural = "report values"
        constraints = [models.UniqueConstraint(fields=["report", "run", "measure"], name="report_values_once")]

    def __str__(self) -> str:
        return f"{self.report_id}/{self.run_id}/{self.measure}"
