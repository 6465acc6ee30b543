"""An annotator's work as admins see it: batches, repeats, excluded judgments."""

from typing import Any

from django.db.models import Count, Q

from annotation.agreement.grade_matrix import known_assessors
from annotation.models import Assignment, Membership
from annotation.models.quality_control import Batch, JudgmentExclusion
from annotation.quality_control import exclusion, onboarding
from corpus.models import Assessor

SHOWN = 50


def annotator_record(membership: Membership) -> dict[str, Any]:
    """Read what the page of a person shows. Nine statements."""
    acts = JudgmentExclusion.objects.filter(membership=membership)
    acts = acts.select_related("made_by", "reverses", "reversed_by").order_by("-pk")
    result = onboarding.read_result(membership)
    own = (Assessor.Kind.PERSON, membership.assessor_id)
    names = (one.name for one in known_assessors(membership.collection) if (one.kind, one.id) == own)
    standing = membership.assignments.filter(Assignment.judgments()).count()
    return {
        "standing": standing,
        # With those that are no tasks: under aspects, and an adjudicator's.
        "excludable": standing > 0 or exclusion.current_judgments(membership).exists(),
        "texts": exclusion.current_texts(membership).count(),
        "acts": list(acts[:SHOWN]),
        "batches": list(Batch.objects.filter(membership=membership).order_by("-number")[:SHOWN]),
        "result": result if result.answered else None,
        # The name under which the list of pairs finds what they graded; empty where it finds nothing.
        "listed_as": next(names, ""),
    }


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
    """Count the batches that are closed, and of them those with missed checks and those without any check."""
    return Batch.objects.filter(membership__collection=collection).aggregate(
        closed=Count("pk"), missed=Count("pk", filter=Q(missed__gt=0)), unchecked=Count("pk", filter=Q(checks=0))
    )
