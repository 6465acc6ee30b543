"""The calm pages that an annotator meets in place of a pair: paused, consent, practice, test, failed, passed."""

from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.models import Assignment, Membership
from annotation.models.quality_control import Consent, ConsentText, GoldPair, JudgmentExclusion
from annotation.work.queue.annotators import closed, needs_qualification
from annotation.work.queue.undo import end_lease
from annotation.work.settings import guidelines
from corpus.errors import BadInput
from corpus.labels import reference_grades
from corpus.models import Item
from store.sql import read_sql

PRACTICE = 5  # Examples with feedback before the test (DREAM A.2).
SHOWN = 50  # Returned batches that their author reads of.


@dataclass(frozen=True, slots=True)
class QualificationResult:
    """A member's progress in a test: pairs answered, of how many, and how many right."""

    answered: int
    right: int
    total: int
    practised: int


@dataclass(frozen=True, slots=True)
class OnboardingStop:
    """What stands before the next task: paused, consent, failed, untested, practice, trial, passed."""

    kind: str
    note: str = ""
    text: ConsentText | None = None
    result: QualificationResult | None = None
    feedback: dict[str, Any] | None = None  # Of `example_feedback`.
    mark: int = 0
    practice: int = PRACTICE


def find_stop(membership: Membership) -> OnboardingStop | None:
    """Return what to show where no pair is open; costs no statement if nothing closes."""
    if not (asked := needs_qualification(membership)) and not closed(membership):
        return None
    if asked:
        # Read anew: the answer that has just been stored may have decided the test.
        membership.refresh_from_db(fields=["qualified_at", "failed_at"])
    why, mark = closed(membership), membership.collection.pass_mark
    if why == "paused":
        return OnboardingStop("paused", note=membership.pause_note)
    if why == "consent":
        return OnboardingStop("consent", text=ConsentText.current(membership.collection))
    found = read_result(membership)
    if why == "failed" or membership.qualified_at is not None:
        return OnboardingStop(why or "passed", result=found, mark=mark)
    if not found.total:
        return OnboardingStop("untested")
    kind = "practice" if found.practised else "trial"
    return OnboardingStop(kind, result=found, mark=mark, feedback=example_feedback(membership))


def has_new_guidelines(membership: Membership) -> bool:
    """Return whether the guidelines have a version that this member has not acknowledged."""
    return membership.collection.guideline_version > membership.guideline_read


def returned_batches(**of: Any) -> list[JudgmentExclusion]:
    """Return batches that went back, newest first; `reversed_by` is set on those accepted after all."""
    acts = JudgmentExclusion.objects.filter(why=JudgmentExclusion.Why.BATCH, reverses=None, **of)
    return list(acts.select_related("reversed_by", "membership__user").order_by("-pk")[:SHOWN])


def guideline_changes(membership: Membership) -> tuple[int, list[tuple[str, str]]]:
    """Return the number of the guidelines that hold, and their lines: same, new, or gone since the member read them."""
    number, text = guidelines.current(membership.collection)
    read = guidelines.versions(membership.collection).filter(version=membership.guideline_read).first()
    ours = guidelines.translate_lines(guidelines.built_in(membership.collection.relevance))
    before = (guidelines.displayed_text(read) if read else ours).splitlines()
    after = text.splitlines()
    found: list[tuple[str, str]] = []
    # autojunk would leave frequent lines, such as blank ones, out of the comparison.
    for how, a, b, x, y in SequenceMatcher(a=before, b=after, autojunk=False).get_opcodes():
        found += [("gone", line) for line in before[a:b] if how != "equal"]
        found += [("same" if how == "equal" else "new", line) for line in after[x:y]]
    return number, found


@transaction.atomic
def accept_consent(*, membership: Membership, version: int) -> None:
    """Record a member's consent. BadInput for another version than the valid one."""
    if version != membership.collection.consent_version or not version:
        raise BadInput(_("The text has changed since you opened it. Please read it again"))
    Consent.objects.get_or_create(membership=membership, version=version)
    Membership.objects.filter(pk=membership.pk).update(consent=version)


RESULT = read_sql(__file__, "read_trial_result")


def read_result(membership: Membership) -> QualificationResult:
    """Return the member's result in the qualification test that they take, or took last."""
    values = {"membership": membership.pk, "collection": membership.collection_id, "trial": membership.trial}
    with connection.cursor() as cursor:
        cursor.execute(RESULT, values)
        return QualificationResult(*cursor.fetchone())


def decide(membership: int) -> bool | None:
    """Decide after the last pair whether the member has passed; None where there is no test. A skip counts as wrong."""
    row = Membership.objects.select_related("collection").get(pk=membership)
    found = read_result(row)
    if not found.total:
        return None
    # In whole numbers: 9 of 10 must not miss a mark of 90 by a rounding error.
    passed = 100 * found.right >= row.collection.pass_mark * found.total
    row.qualified_at, row.failed_at = (timezone.now(), None) if passed else (None, timezone.now())
    row.save(update_fields=["qualified_at", "failed_at"])
    if not passed:
        end_lease(row)
    return passed


def example_feedback(membership: Membership) -> dict[str, Any] | None:
    """Return the member's and the experts' grade of the last example, and why; None where more came after it."""
    last = (
        Assignment.objects.filter(membership=membership, state=Assignment.State.DONE, judgment__grade__isnull=False)
        .select_related("item__pair__query", "item__pair__document", "judgment")
        .order_by(F("ended_at").desc())
        .first()
    )
    if (
        last is None
        or last.judgment is None
        or last.item.reason != Item.Reason.QUALIFICATION
        or last.item.priority >= 0
    ):
        return None
    expected = reference_grades(membership.collection, [last.item.pair_id]).get(last.item.pair_id)
    given = last.judgment.grade
    if expected is None or given is None:
        return None
    pair, mark = last.item.pair, membership.collection.relevant_from
    comments = GoldPair.objects.filter(pair=pair, answers__comment__gt="").values_list("answers__comment", flat=True)
    return {
        "given": given,
        "expected": expected,
        "right": (given >= mark) == (expected >= mark),
        "query": pair.query.text,
        "document": pair.document.text,
        "comments": list(comments[:3]),
    }
