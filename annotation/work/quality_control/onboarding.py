"""Onboarding: what an annotator sees in place of a pair: consent, guidelines, practice, test, failed, paused."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from typing import Any

from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.access.audit_log.recording import record
from annotation.models import Assignment, Membership
from annotation.models.quality_control import Consent, ConsentText, JudgmentExclusion
from annotation.work.queue.annotators import WorkLimits, closed, count_judged, needs_qualification
from annotation.work.queue.undo import end_lease
from annotation.work.settings import guidelines
from corpus.errors import BadInput
from corpus.holding import hold
from corpus.labels import reference_grades
from corpus.models import Collection, Item
from store.sql import fetch_rows, read_sql

PRACTICE_COUNT = 5  # Examples with feedback before the test (DREAM A.2).
SHOWN = 50  # The most returned batches on a page.


@dataclass(frozen=True, slots=True)
class QualificationResult:
    """A member's progress in the qualification test. `ended`: answered, flagged and skipped pairs."""

    answered: int
    right: int
    total: int
    practised: int
    practice: int  # Pairs of practice.
    practice_ended: int
    ended: int

    @property
    def in_practice(self) -> bool:
        """Return whether the next pair is one of practice."""
        return self.practice_ended < self.practice

    @property
    def position(self) -> int:
        """Return the position of the next pair, from 1, within practice or the test."""
        return (self.practice_ended if self.in_practice else self.ended) + 1


@dataclass(frozen=True, slots=True)
class OnboardingStop:
    """The reason why a member gets no task.

    `kind`: paused, consent, failed, untested, practice, trial, passed, or a limit (deadline, quota, daily_quota).
    """

    kind: str
    note: str = ""
    text: ConsentText | None = None
    result: QualificationResult | None = None
    feedback: dict[str, Any] | None = None  # From `example_feedback`.
    mark: int = 0
    guidelines: str = ""  # Before the first pair of practice.
    asked_at: datetime | None = None  # When they asked to take a failed test again.
    # Their pairs and comparisons, where a limit of their work is reached, and those of them that are comparisons.
    today: int = 0
    judged: int = 0
    compared: int = 0

    @property
    def is_end(self) -> bool:
        """Return whether the member can do nothing to go on."""
        return self.kind in ("paused", "failed", "deadline", "quota", "daily_quota")

    @property
    def needed(self) -> int:
        """Return how many right answers pass the test."""
        return -(-self.mark * self.result.total // 100) if self.result else 0


def find_stop(membership: Membership) -> OnboardingStop | None:
    """Return why the member gets no task; None where the queue is open to them. No statement if nothing is closed."""
    if not (needs_test := needs_qualification(membership)) and not closed(membership):
        return _find_limit(membership)
    if needs_test:
        # Read again, because the answer that was just stored may have decided the test.
        membership.refresh_from_db(fields=["qualified_at", "failed_at", "retake_asked_at"])
    why, mark = closed(membership), membership.collection.pass_mark
    if WorkLimits.of(membership).is_over() and not why:
        return _find_limit(membership)
    if why == "paused":
        return OnboardingStop("paused", note=membership.pause_note)
    if why == "consent":
        return OnboardingStop("consent", text=ConsentText.current(membership.collection))
    result = read_result(membership)
    if why == "failed" or membership.qualified_at is not None:
        return OnboardingStop(why or "passed", result=result, mark=mark, asked_at=membership.retake_asked_at)
    if not result.total:
        return OnboardingStop("untested")
    kind = "practice" if result.practised else "trial"
    text = "" if result.practice_ended or result.ended else guidelines.current(membership.collection)[1]
    return OnboardingStop(kind, result=result, mark=mark, feedback=example_feedback(membership), guidelines=text)


def _find_limit(membership: Membership) -> OnboardingStop | None:
    """Return the limit that ends the member's work for now: a quota or the deadline."""
    limits = WorkLimits.of(membership)
    is_over = limits.is_over()
    if not limits.has_quota and not is_over:
        return None
    counts = count_judged(membership.pk)
    reached = "deadline" if is_over else limits.find_reached(counts.work_today, counts.work)
    if not reached:
        return None
    compared = counts.compared_today if reached == "daily_quota" else counts.compared
    return OnboardingStop(reached, today=counts.work_today, judged=counts.work, compared=compared)


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


@transaction.atomic
def ask_retake(*, membership: Membership) -> None:
    """Record that a member who failed asks to take the test again; asking twice is one request.

    Raises BadInput for a member who did not fail, or does not need the test any more.
    """
    member = hold(Membership.objects.select_related("collection"), membership.pk, no_key=True)
    if member.failed_at is None or not needs_qualification(member):
        raise BadInput(_("There is no failed test to take again."))
    if member.retake_asked_at is None:
        Membership.objects.filter(pk=member.pk).update(retake_asked_at=timezone.now())
        record(membership.user, "qualification.asked", member.collection, test=member.trial)


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
    row.retake_asked_at = None
    row.save(update_fields=["qualified_at", "failed_at", "retake_asked_at"])
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
    return {
        "given": grade,
        "expected": expected,
        "right": (grade >= mark) == (expected >= mark),
        "query": pair.query.text,
        "document": pair.document.text,
        "explanations": explanations_of(membership.collection, [pair.pk]).get(pair.pk, []),
    }


EXPLANATIONS = read_sql(__file__, "read_explanations")


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a gold pair has its grade. `by`: the model or the author; "" for experts, whom newcomers do not see."""

    text: str
    by: str


def explanations_of(collection: Collection, pairs: Iterable[int]) -> dict[int, list[Explanation]]:
    """Return the explanations of gold pairs by pair; pairs without any are left out. One statement."""
    explanations: dict[int, list[Explanation]] = {}
    for pair, text, by in fetch_rows(EXPLANATIONS, pairs=list(pairs), relevant_from=collection.relevant_from):
        explanations.setdefault(pair, []).append(Explanation(text, by))
    return explanations
