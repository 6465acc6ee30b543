"""One person's work, for an admin: batches, repeats, what was set aside."""

from dataclasses import dataclass

from django.db.models import Count, Q

from annotation.agreement.grade_matrix import known_assessors
from annotation.models import Assignment, Membership
from annotation.models.quality_control import Batch, JudgmentExclusion
from annotation.quality_control import exclusion, onboarding
from annotation.quality_control.onboarding import QualificationResult
from corpus.models import Assessor

SHOWN = 50


@dataclass(frozen=True, slots=True)
class AnnotatorRecord:
    """What the page of a person shows."""

    standing: int  # Judgments that could be set aside.
    texts: int  # And edited texts.
    acts: list[JudgmentExclusion]  # Newest first; each with `reversed`: it was taken back.
    batches: list[Batch]
    result: QualificationResult | None  # Of the qualification test, where one was taken.
    open: int
    # The name under which the list of pairs finds what they graded; empty where it finds nothing.
    listed_as: str


def annotator_record(membership: Membership) -> AnnotatorRecord:
    """In nine statements."""
    acts = list(
        JudgmentExclusion.objects.filter(membership=membership)
        .select_related("made_by", "reverses", "reversed_by")
        .order_by("-pk")[:SHOWN]
    )
    found = onboarding.read_result(membership)
    return AnnotatorRecord(
        standing=exclusion.current_judgments(membership).count(),
        texts=exclusion.current_texts(membership).count(),
        acts=acts,
        batches=list(Batch.objects.filter(membership=membership).order_by("-number")[:SHOWN]),
        result=found if found.answered else None,
        open=Assignment.objects.filter(membership=membership, state=Assignment.State.OPEN).count(),
        listed_as=_listed_as(membership),
    )


def _listed_as(membership: Membership) -> str:
    own = (Assessor.Kind.PERSON, membership.assessor_id)
    return next((one.name for one in known_assessors(membership.collection) if (one.kind, one.id) == own), "")


def returned_batches(collection: int) -> list[JudgmentExclusion]:
    """Batches of the collection that went back and were not accepted after all, newest first."""
    found = JudgmentExclusion.objects.filter(
        membership__collection=collection,
        why=JudgmentExclusion.Why.BATCH,
        reverses=None,
        reversed_by=None,
    )
    return list(found.select_related("membership__user").order_by("-pk")[:SHOWN])


def batch_counts(collection: int) -> dict[str, int]:
    """Batches that were looked at, and of them those with missed checks."""
    return Batch.objects.filter(membership__collection=collection).aggregate(
        closed=Count("pk"), missed=Count("pk", filter=Q(missed__gt=0)), unchecked=Count("pk", filter=Q(checks=0))
    )
