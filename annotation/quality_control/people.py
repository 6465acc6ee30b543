"""An annotator's work as admins see it: batches, repeats, excluded judgments."""

from typing import Any

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
