"""Answers that models generate from the documents of runs, with a judge's verdict on each."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from benchmark.models.runs import Run
from corpus.models import NUMBER, Numbered, Query
from judges.models.model_jobs import ModelJob


class AnswerEvaluation(Numbered, ModelJob):
    """An evaluation: answers of generators from the top of runs, each judged against the reference answers."""

    key = models.CharField(max_length=64, help_text="sha256 of all that the answers depend on.")
    options = models.JSONField(
        default=dict, help_text="runs (ids), generators, judge, k, contexts; budget and max_calls where there are any."
    )

    class Meta:
        triggers = [NUMBER]
        constraints = [
            models.UniqueConstraint(fields=["collection", "key"], name="answer_evaluation_once"),
            models.UniqueConstraint(fields=["collection", "number"], name="answer_evaluation_number"),
        ]

    def __str__(self) -> str:
        return f"{self.collection_id} answers {self.number}"


class GeneratedAnswer(models.Model):
    """A generator's answer to a query from a run's documents, with the judge's verdict (`correct`)."""

    evaluation = models.ForeignKey(AnswerEvaluation, models.CASCADE, related_name="answers", db_index=False)
    query = models.ForeignKey(Query, models.CASCADE, db_constraint=False, related_name="+")
    run = models.ForeignKey(Run, models.CASCADE, related_name="+")
    generator = models.CharField(max_length=100)
    documents = ArrayField(models.BigIntegerField(), help_text="Primary keys of what was shown, best first.")
    evidence = ArrayField(
        models.TextField(), default=list, help_text="Shown in place of the documents, in their order; else empty."
    )
    without_evidence = models.PositiveSmallIntegerField(default=0, help_text="Documents that were left out for it.")
    document_length = models.PositiveIntegerField(help_text="Words of the documents that were shown, as cut.")
    context_length = models.PositiveIntegerField(help_text="Words of what the generator was shown of them.")
    answer = models.TextField(blank=True)
    problem = models.TextField(blank=True, help_text="Why there is no answer, or no verdict on it.")
    correct = models.BooleanField(null=True, help_text="Null: the judge gave no verdict.")
    is_exact_match = models.BooleanField(default=False)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["evaluation", "query", "run", "generator"], name="generated_answer_once")
        ]

    def __str__(self) -> str:
        return f"{self.evaluation_id}/{self.query_id}/{self.run_id} {self.generator}"
