"""The calm pages that an annotator meets in place of a pair: paused, consent, practice, test, failed, passed."""

from dataclasses import dataclass
from difflib import SequenceMatcher

from annotation.data import guidelines
from annotation.models import Membership
from annotation.models.quality_control import ConsentText, SettingAside
from annotation.quality_control import consent, qualification
from annotation.quality_control.access_checks import closed, is_tried
from annotation.quality_control.qualification import PRACTICE, Feedback, QualificationResult

SHOWN = 50
"""Returned batches that their author reads of."""


@dataclass(frozen=True, slots=True)
class OnboardingStop:
    """Why there is no pair on the desk; `kind`: paused, consent, failed, untested, practice, trial, passed."""

    kind: str
    note: str = ""
    text: ConsentText | None = None
    result: QualificationResult | None = None
    feedback: Feedback | None = None
    mark: int = 0
    practice: int = PRACTICE


def stop(membership: Membership) -> OnboardingStop | None:
    """What to show where no pair is open. Without a gate it costs nothing."""
    if not (asked := is_tried(membership)) and not closed(membership):
        return None
    if asked:
        membership.refresh_from_db(fields=["qualified_at", "failed_at"])
    why, mark = closed(membership), membership.collection.pass_mark
    if why == "paused":
        return OnboardingStop("paused", note=membership.pause_note)
    if why == "consent":
        return OnboardingStop("consent", text=consent.current(membership.collection))
    found = qualification.result(membership)
    if why == "failed" or membership.qualified_at is not None:
        return OnboardingStop(why or "passed", result=found, mark=mark)
    if not found.total:
        return OnboardingStop("untested")
    kind = "practice" if found.practised else "trial"
    return OnboardingStop(kind, result=found, mark=mark, feedback=qualification.feedback(membership))


def announced(membership: Membership) -> bool:
    """The guidelines have a version that this member did not say they have read."""
    return membership.collection.guideline_version > membership.guideline_read


def returned(membership: Membership) -> list[SettingAside]:
    """Batches of this member that went back, newest first; of those accepted after all `reversed_by` tells."""
    found = SettingAside.objects.filter(membership=membership, why=SettingAside.Why.BATCH, reverses=None)
    return list(found.select_related("reversed_by").order_by("-pk")[:SHOWN])


def read_returned(membership: Membership) -> None:
    """The member says that they have read of every batch that went back."""
    Membership.objects.filter(pk=membership.pk).update(returned=0)


@dataclass(frozen=True, slots=True)
class OnboardingLine:
    """A line of the guidelines: same, new or gone."""

    kind: str
    text: str


def changes(membership: Membership) -> tuple[int, list[OnboardingLine]]:
    """The guidelines that hold, line by line against those that the member has read; and their number."""
    number, text = guidelines.current(membership.collection)
    read = guidelines.versions(membership.collection).filter(version=membership.guideline_read).first()
    ours = guidelines.translated(guidelines.built_in(membership.collection.relevance))
    before = (guidelines.shown(read) if read else ours).splitlines()
    after = text.splitlines()
    found: list[OnboardingLine] = []
    for how, a, b, x, y in SequenceMatcher(a=before, b=after, autojunk=False).get_opcodes():
        if how == "equal":
            found += [OnboardingLine("same", line) for line in after[x:y]]
        else:
            found += [OnboardingLine("gone", line) for line in before[a:b]] + [
                OnboardingLine("new", line) for line in after[x:y]
            ]
    return number, found


def acknowledge(membership: Membership, version: int) -> None:
    """The member says that they have read this version; never one that was not written, or less than before."""
    version = min(version, membership.collection.guideline_version)
    Membership.objects.filter(pk=membership.pk, guideline_read__lt=version).update(guideline_read=version)
