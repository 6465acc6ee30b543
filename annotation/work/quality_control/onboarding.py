"""Onboarding: what an annotator sees in place of a pair: paused, consent, practice, test, failed, passed."""

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

PRACTICE_COUNT = 5  # Examples with feedback before the test (DREAM A.2).
SHOWN = 50  # The most returned batches on a page.


@dataclass(frozen=True, slots=True)
class QualificationResult:
    """A member's progress in the qualification test: answered pairs, right answers, all pairs, practised pairs."""

    answered: int
    right: int
    total: int
    practised: int


@dataclass(frozen=True, slots=True)
class OnboardingStop:
    """The reason why a member gets no task: paused, consent, failed, untested, practice, trial or passed."""

    kind: str
    note: str = ""
    text: ConsentText | None = None
    result: QualificationResult | None = None
    feedback: dict[str, Any] | None = None  # From `example_feedback`.
    mark: int = 0
    practice: int = PRACTICE_COUNT


def find_stop(membership: Membership) -> OnboardingStop | None:
    """Return why the member gets no task, None where the queue is open to them; no statement if nothing is closed."""
    if not (needs_test := needs_qualification(membership)) and not closed(membership):
        return None
    if needs_test:
        # Read again, because the answer that was just stored may have decided the test.
        membership.refresh_from_db(fields=["qualified_at", "failed_at"])
    why, mark = closed(membership), membership.collection.pass_mark
    if why == "paused":
        return OnboardingStop("paused", note=membership.pause_note)
    if why == "consent":
        return OnboardingStop("consent", text=ConsentText.current(membership.collection))
    result = read_result(membership)
    if why == "failed" or membership.qualified_at is not None:
        return OnboardingStop(why or "passed", result=result, mark=mark)
    if not result.total:
        return OnboardingStop("untested")
    kind = "practice" if result.practised else "trial"
    return OnboardingStop(kind, result=result, mark=mark, feedback=example_feedback(membership))


def has_new_guidelines(membership: Membership) -> bool:
    """Return whether the guidelines have a version that this member has not acknowledged."""
    return membership.collection.guideline_version > membership.guideline_read


def returned_batches(**filters: Any) -> list[JudgmentExclusion]:
    """Return the returned batches, newest first; `reversed_by` is set on those that were reinstated."""
    acts = JudgmentExclusion.objects.filter(why=JudgmentExclusion.Why.BATCH, reverses=None, **filters)
    return list(acts.select_related("reversed_by", "membership__user").order_by("-pk")[:SHOWN])


def guideline_changes(membership: Membership) -> tuple[int, list[tuple[str, str]]]:
    """Return the number of the current guidelines, and their lines: same, new or gone since the member read them."""
    number, text = guidelines.current(membership.collection)
    read = guidelines.versions(membership.collection).filter(version=membership.guideline_read).first()
    built_in = guidelines.translate_lines(guidelines.built_in(membership.collection.relevance))
    before = (guidelines.displayed_text(read) if read else built_in).splitlines()
    after = text.splitlines()
    lines: list[tuple[str, str]] = []
    # Without autojunk, which ignores frequent lines such as blank ones.
    for tag, a, b, x, y in SequenceMatcher(a=before, b=after, autojunk=False).get_opcodes():
        lines += [("gone", line) for line in before[a:b] if tag != "equal"]
        lines += [("same" if tag == "equal" else "new", line) for line in after[x:y]]
    return number, lines


@transaction.atomic
def accept_consent(*, membership: Membership, version: int) -> None:
    """Record a member's consent. Raises BadInput for any version but the current one."""
    if version != membership.collection.consent_version or not version:
        raise BadInput(_("The text has changed since you opened it. Please read it again"))
    Consent.objects.get_or_create(membership=membership, version=version)
    Membership.objects.filter(pk=membership.pk).update(consent=version)


RESULT = read_sql(__file__, "read_trial_result")


def read_result(membership: Membership) -> QualificationResult:
    """Return the member's result in their current or last qualification test."""
    values = {"membership": membership.pk, "collection": membership.collection_id, "trial": membership.trial}
    with connection.cursor() as cursor:
        cursor.execute(RESULT, values)
        return QualificationResult(*cursor.fetchone())


def decide(membership: int) -> bool | None:
    """Store and return whether the member has passed the finished test; None where there is no test.

    A skipped pair counts as wrong.
    """
    row = Membership.objects.select_related("collection").get(pk=membership)
    result = read_result(row)
    if not result.total:
        return None
    # Compared as whole numbers, so that 9 of 10 does not miss a mark of 90 by a rounding error.
    passed = 100 * result.right >= row.collection.pass_mark * result.total
    row.qualified_at, row.failed_at = (timezone.now(), None) if passed else (None, timezone.now())
    row.save(update_fields=["qualified_at", "failed_at"])
    if not passed:
        end_lease(row)
    return passed


def example_feedback(membership: Membership) -> dict[str, Any] | None:
    """Return the grades and comments on the last practice pair; None after any other pair."""
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
    grade = last.judgment.grade
    if expected is None or grade is None:
        return None
    pair, mark = last.item.pair, membership.collection.relevant_from
    comments = GoldPair.objects.filter(pair=pair, answers__comment__gt="").values_list("answers__comment", flat=True)
    return {
        "given": grade,
        "expected": expected,
        "right": (grade >= mark) == (expected >= mark),
        "query": pair.query.text,
        "document": pair.document.text,
        "comments": list(comments[:3]),
    }
