"""Aspects, the parts of a complete answer, with all their revisions and reviews."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from corpus.models import append_only
from corpus.models.judging import Assessor
from corpus.models.texts import Query


class Aspect(models.Model):
    """A weighted sub-need of a query (BRIGHT-Pro 3.2).

    The rows are derived from the query's newest AspectRevision. The row of a removed aspect stays,
    because judgments refer to it (docs/adr/0029).
    """

    query = models.ForeignKey(Query, models.CASCADE, related_name="aspects")
    external_id = models.CharField(max_length=255)
    text = models.TextField()
    rationale = models.TextField(blank=True)
    importance = models.PositiveSmallIntegerField(default=3)
    place = models.PositiveSmallIntegerField(default=0, db_default=0, help_text="Order within the query.")
    is_current = models.BooleanField(default=True, db_default=True, help_text="In the query's set as it stands now.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["query", "external_id"], name="aspect_id"),
            models.CheckConstraint(name="aspect_importance", condition=Q(importance__gte=1, importance__lte=5)),
        ]

    def __str__(self) -> str:
        return self.external_id


class AspectRevision(models.Model):
    """A change of a query's aspects, with the whole set after it. Append-only: the newest one is valid."""

    class Act(models.TextChoices):
        ADD = "add", _("added")
        CLARIFY = "clarify", _("clarified")
        WEIGH = "weigh", _("weighed")
        SPLIT = "split", _("split")
        MERGE = "merge", _("merged")
        REMOVE = "remove", _("removed")
        KEEP = "keep", _("kept a document")
        DISCARD = "discard", _("discarded a document")
        REOPEN = "reopen", _("returned a document to review")
        PASSAGE = "passage", _("added passages")
        JOIN = "join", _("joined passages")
        CUT = "cut", _("cut a passage")
        IMPORT = "import", _("imported")
        REVIEW = "review", _("reviewed")
        UNDO = "undo", _("undid")

    query = models.ForeignKey(Query, models.CASCADE, related_name="aspect_revisions", db_index=False)
    number = models.PositiveIntegerField(help_text="From 1 for each query.")
    act = models.CharField(max_length=8, choices=Act)
    note = models.TextField(blank=True, help_text="What it was done to, or why.")
    aspects = models.JSONField(help_text="The set after the act, in order: id, text, rationale, importance.")
    judgments = ArrayField(models.BigIntegerField(), default=list, help_text="Ids of the judgments that the act gave.")
    undoes = models.OneToOneField("self", models.CASCADE, null=True, related_name="undone_by")
    author = models.ForeignKey(Assessor, models.PROTECT, related_name="+")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["query", "number"], name="aspect_revision_number")]
        triggers = append_only.TRIGGERS

    def __str__(self) -> str:
        return f"{self.query_id} revision {self.number}: {self.act}"


class AspectReview(models.Model):
    """A second person's review of a query's aspects and documents (BRIGHT-Pro appendix B), made of ReviewSteps."""

    class State(models.TextChoices):
        OPEN = "open", _("in review")
        SUBMITTED = "submitted", _("reviewed")
        RELEASED = "released", _("released")
        EXPIRED = "expired", _("expired")

    query = models.ForeignKey(Query, models.CASCADE, related_name="aspect_reviews")
    revision = models.ForeignKey(AspectRevision, models.CASCADE, related_name="+", help_text="The set as it was found.")
    judgments = ArrayField(
        models.BigIntegerField(), help_text="Ids of the judgments of documents under aspects, as they were found."
    )
    reviewer = models.ForeignKey(Assessor, models.PROTECT, related_name="+")
    blind = models.BooleanField(help_text="The reviewer had neither worked on the query nor weighed it in a review.")
    state = models.CharField(max_length=9, choices=State, default=State.OPEN)
    leased_until = models.DateTimeField(help_text="From then on another person may take the query.")
    accepted = models.BooleanField(null=True, help_text="Once submitted: nothing was changed.")
    final = models.ForeignKey(
        AspectRevision, models.CASCADE, null=True, related_name="+",
        help_text="The newest revision when it was submitted: the review holds until there is another.",
    )  # fmt: skip
    created_at = models.DateTimeField(db_default=Now())
    submitted_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["query"], condition=Q(state="open"), name="aspect_review_one_open"),
            models.CheckConstraint(
                name="aspect_review_submitted",
                condition=Q(state="submitted", final__isnull=False, accepted__isnull=False, submitted_at__isnull=False)
                | (~Q(state="submitted") & Q(final=None, accepted=None, submitted_at=None)),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.query_id} by {self.reviewer_id}: {self.state}"


class ReviewStep(models.Model):
    """A reviewer's answers in one step, and the revision of their changes. Append-only."""

    class Kind(models.TextChoices):
        WEIGHTS = "weights", _("own weights")
        ASPECTS = "aspects", _("aspects")
        DOCUMENTS = "documents", _("documents")
        UNDO = "undo", _("undone")

    review = models.ForeignKey(AspectReview, models.CASCADE, related_name="steps")
    kind = models.CharField(max_length=9, choices=Kind)
    answers = models.JSONField(default=dict, help_text="Own importances; the four criteria; a decision per document.")
    revision = models.ForeignKey(AspectRevision, models.CASCADE, null=True, related_name="+")
    undoes = models.OneToOneField("self", models.CASCADE, null=True, related_name="undone_by")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        triggers = append_only.TRIGGERS

    def __str__(self) -> str:
        return f"{self.kind} of review {self.review_id}"
