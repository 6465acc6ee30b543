"""The blind study of reference answers: people write answers, and others rate them and the model's."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from benchmark.models.agents import AgentJob, ReferenceAnswer
from corpus.models import Assessor, Collection, append_only


class ReferenceStudy(models.Model):
    """A study with its queries, drawn once. While it is open, people write and rate."""

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="reference_studies", db_index=False)
    job = models.ForeignKey(AgentJob, models.CASCADE, related_name="studies", help_text="Wrote the model's answers.")
    seed = models.IntegerField()
    references = ArrayField(models.BigIntegerField(), help_text="Primary keys of the reference answers, by query id.")
    made_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(db_default=Now())
    closed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["collection"], condition=Q(closed_at__isnull=True), name="reference_study_open_once"
            )
        ]
        indexes = [models.Index(fields=["collection"], name="reference_study_collection")]

    def __str__(self) -> str:
        return f"reference study {self.pk}"


class StudyAnswer(models.Model):
    """A person's answer to a query of a study; until it is written, the query is reserved."""

    study = models.ForeignKey(ReferenceStudy, models.CASCADE, related_name="answers", db_index=False)
    reference = models.ForeignKey(ReferenceAnswer, models.CASCADE, related_name="study_answers")
    writer = models.ForeignKey(Assessor, models.PROTECT, related_name="+")
    answer = models.TextField(blank=True)
    citations = ArrayField(models.CharField(max_length=255), default=list)
    reserved_at = models.DateTimeField()
    written_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["study", "reference"], name="study_answer_once"),
            models.UniqueConstraint(
                fields=["study", "writer"], condition=Q(written_at__isnull=True), name="study_answer_open_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.study_id}/{self.reference_id}"


class StudyRating(models.Model):
    """A person's ratings of both answers to a query, from 1 to 5. A rating never changes."""

    answer = models.ForeignKey(StudyAnswer, models.CASCADE, related_name="ratings")
    rater = models.ForeignKey(Assessor, models.PROTECT, related_name="+")
    model_first = models.BooleanField(help_text="Whether the model's answer was shown first.")
    model_completeness = models.PositiveSmallIntegerField()
    model_quality = models.PositiveSmallIntegerField()
    person_completeness = models.PositiveSmallIntegerField()
    person_quality = models.PositiveSmallIntegerField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="study_rating_from_1_to_5",
                condition=Q(
                    model_completeness__range=(1, 5),
                    model_quality__range=(1, 5),
                    person_completeness__range=(1, 5),
                    person_quality__range=(1, 5),
                ),
            )
        ]
        triggers = append_only.TRIGGERS

    def __str__(self) -> str:
        return f"{self.answer_id} by {self.rater_id}"


class StudyWithdrawal(models.Model):
    """The withdrawal of a rating by its rater; withdrawn ratings are not counted."""

    rating = models.OneToOneField(StudyRating, models.CASCADE, related_name="withdrawal")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        triggers = append_only.TRIGGERS

    def __str__(self) -> str:
        return f"rating {self.rating_id}"
