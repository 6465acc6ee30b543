"""Agents that search with a retriever, their answers with grades, and the reference answers for grading."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy

from benchmark.models.suites import Suite
from corpus.models import NUMBER, Collection, Numbered, Query
from judges.models.model_jobs import ModelJob


class AgentSample(models.Model):
    """The queries of a suite or collection for agents, drawn once and the same for all of them."""

    # The sample stays when its suite is deleted.
    suite = models.OneToOneField(Suite, models.SET_NULL, null=True, related_name="agent_sample")
    collection = models.OneToOneField(Collection, models.CASCADE, null=True, related_name="agent_sample")
    seed = models.IntegerField()
    per_member = models.PositiveIntegerField(help_text="Queries of each collection, at most.")
    queries = models.JSONField(help_text="Primary keys of the queries, in order, by primary key of the collection.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="agent_sample_of_one", condition=Q(suite__isnull=True) | Q(collection__isnull=True)
            )
        ]

    def __str__(self) -> str:
        return f"agent sample {self.pk}"


class AgentJob(Numbered, ModelJob):
    """A job of agents on one collection: a search with answers, a grading, or reference answers."""

    class Kind(models.TextChoices):
        SEARCH = "search", gettext_lazy("agents search")
        GRADE = "grade", gettext_lazy("answers are graded")
        REFERENCE = "reference", gettext_lazy("reference answers")

    kind = models.CharField(max_length=9, choices=Kind)
    key = models.CharField(max_length=64, help_text="sha256 of all that its results depend on.")
    sample = models.ForeignKey(AgentSample, models.CASCADE, null=True, related_name="jobs")
    graded = models.ForeignKey(
        "self", models.CASCADE, null=True, related_name="gradings", help_text="Of a grading: the job of the answers."
    )
    options = models.JSONField(default=dict, help_text="protocol, rounds, retrievers, agents, judge, limits; by kind.")

    class Meta:
        triggers = [NUMBER]
        constraints = [
            models.UniqueConstraint(fields=["collection", "key"], name="agent_job_once"),
            models.UniqueConstraint(fields=["collection", "number"], name="agent_job_number"),
        ]

    def __str__(self) -> str:
        return f"{self.collection_id} agents {self.number} ({self.kind})"


class Trace(models.Model):
    """The searches and answers of one agent with one retriever for one query. A trace never changes."""

    job = models.ForeignKey(AgentJob, models.CASCADE, related_name="traces", db_index=False)
    query = models.ForeignKey(Query, models.CASCADE, db_constraint=False, related_name="+")
    retriever = models.CharField(max_length=100)
    agent = models.CharField(max_length=100)
    rounds = models.JSONField(help_text="search, returned (document ids), truncated; an empty search: no usable turn.")
    answers = models.JSONField(help_text="round, answer, confidence, citations, unknown_citations, problem.")
    stop = models.CharField(max_length=10, help_text="rounds, answered, limit or empty.")
    searches = models.PositiveSmallIntegerField()
    early_answers = models.PositiveSmallIntegerField(default=0)
    several_searches = models.PositiveSmallIntegerField(default=0)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "query", "retriever", "agent"], name="agent_trace_once")]

    def __str__(self) -> str:
        return f"{self.job_id}/{self.query_id} {self.retriever} {self.agent}"


class AnswerAssessment(models.Model):
    """A judge's grades of one answer of a trace; `problem` says why if they are missing."""

    job = models.ForeignKey(AgentJob, models.CASCADE, related_name="assessments", db_index=False)
    trace = models.ForeignKey(Trace, models.CASCADE, related_name="assessments")
    round = models.PositiveSmallIntegerField()
    aspect_scores = models.JSONField(default=dict, help_text="0, 0.5 or 1 by aspect id.")
    importances = models.JSONField(default=dict, help_text="The weights of the aspects, from 1 to 5, as they were.")
    overall_quality = models.PositiveSmallIntegerField(null=True)
    completeness = models.PositiveSmallIntegerField(null=True, help_text="Null: the query has no aspects.")
    justification = models.TextField(blank=True)
    problem = models.TextField(blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "trace", "round"], name="answer_assessment_once")]

    def __str__(self) -> str:
        return f"{self.job_id}/{self.trace_id} {self.round}"


class ReferenceAnswer(models.Model):
    """The answer that agents' answers are graded against, which a model writes from the aspects' passages."""

    job = models.ForeignKey(AgentJob, models.CASCADE, related_name="references", db_index=False)
    query = models.ForeignKey(Query, models.CASCADE, db_constraint=False, related_name="+")
    answer = models.TextField(blank=True)
    citations = ArrayField(models.CharField(max_length=255), default=list)
    model = models.CharField(max_length=200, help_text="The judge's model.")
    prompt_sha256 = models.CharField(max_length=64)
    problem = models.TextField(blank=True, help_text="Why there is no answer.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "query"], name="reference_answer_once")]

    def __str__(self) -> str:
        return f"{self.job_id}/{self.query_id}"
