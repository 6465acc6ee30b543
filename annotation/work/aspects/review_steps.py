"""The three steps of a review in the paper's order (BRIGHT-Pro app. B): own weights, the aspects, each document.

The first person's weights are hidden until the reviewer has given their own. In the two other steps
each criterion and each decision is accepted, or changed with a reason; the change is stored as a
revision in the same transaction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.access.audit_log.recording import record
from annotation.models import Membership
from annotation.work.aspects.reviews import LEASE, Kind, State, current_steps
from corpus.aspects import revising
from corpus.aspects.entries import Entries, check_importance, load_aspects
from corpus.aspects.revising import LockedAspectSet, RevisionDecision
from corpus.errors import BadInput
from corpus.models import Judgment
from corpus.models.aspects import AspectReview, AspectRevision, ReviewStep

# The criteria by which a reviewer judges the aspects (BRIGHT-Pro 3.3, app. B).
CRITERIA = {
    "granularity": gettext_lazy("Granularity"),
    "balance": gettext_lazy("Balance"),
    "coverage": gettext_lazy("Coverage"),
    "weights": gettext_lazy("Weights"),
}
LONGEST_REASON = 1_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """A reviewer's verdict on a criterion or decision: accepted, or changed with the reason."""

    accept: bool
    reason: str = ""
    aspects: tuple[str, ...] = ()  # The aspects that the document supports, for a changed decision on it.


@dataclass(frozen=True, slots=True)
class ReviewedDecision:
    """A decision of the first person: a document kept under an aspect, or discarded (`aspect` "") with a reason."""

    document: int
    external_id: str
    aspect: str = ""
    reason: str = ""

    @property
    def key(self) -> str:
        """Return the decision's name in the form: document and aspect."""
        return f"{self.document}-{self.aspect}"


@transaction.atomic
def give_weights(review: AspectReview, member: Membership, importances: Mapping[str, int]) -> ReviewStep:
    """Store the reviewer's importances, which can be given once. Raises BadInput unless every aspect has one."""
    _lock_review(review)
    # Weights count only if given blind (BRIGHT-Pro app. B): after this step the page shows the first person's.
    earlier_step = current_steps(review).get(Kind.WEIGHTS)
    if earlier_step is not None and earlier_step.answers["importances"] == dict(importances):
        return earlier_step  # The same form sent twice.
    if earlier_step is not None:
        raise BadInput(_("You have already given your weights. They cannot be changed once you saw the first ones."))
    if set(importances) != {entry.id for entry in load_aspects(review.revision.aspects)}:
        raise BadInput(_("Weigh every aspect of the query."))
    checked = {name: check_importance(value) for name, value in importances.items()}
    return _append_step(review, member, Kind.WEIGHTS, {"importances": checked})


@transaction.atomic
def judge_aspects(
    review: AspectReview, member: Membership, verdicts: Mapping[str, Verdict], importances: Mapping[str, int], base: int
) -> ReviewStep:
    """Store the reviewer's verdict on each criterion, and a revision of the weights where they changed them."""
    aspect_set = _lock_review(review)
    _require_next(review, Kind.ASPECTS)
    for name, title in CRITERIA.items():
        if name not in verdicts:
            raise BadInput(_("Choose “Accept” or “Change” for: %(criterion)s.") % {"criterion": title})
        _require_reason(verdicts[name], str(title))
    # The criteria with a changed verdict must be those that the reviewer changed. The aspects are compared with the
    # revision under review, because the reviewer may have edited them on the query's page already.
    reviewed_entries = load_aspects(review.revision.aspects)
    first_importances = {entry.id: entry.importance for entry in reviewed_entries}
    new_importances = {entry.id: importances.get(entry.id, entry.importance) for entry in aspect_set.entries}
    reworded = _wordings(reviewed_entries) != _wordings(aspect_set.entries)
    reweighed = any(new_importances[id] != first_importances[id] for id in new_importances.keys() & first_importances)
    if verdicts["weights"].accept and reweighed:
        raise BadInput(_("Some weights differ from the first ones. Choose “Change” for the weights and say why."))
    if not (verdicts["weights"].accept or reweighed or reworded):
        raise BadInput(_("The weights are as they were. Change at least one of them, or choose “Accept”."))
    changed_criteria = [name for name in ("granularity", "balance", "coverage") if not verdicts[name].accept]
    if reworded and not changed_criteria:
        raise BadInput(_("You changed the aspects. Choose “Change” for granularity, balance or coverage and say why."))
    # New weights can restore the balance of the aspects; granularity and coverage need other wordings.
    unchanged = [name for name in changed_criteria if not (reworded or (name == "balance" and reweighed))]
    if unchanged:
        raise BadInput(
            _("The aspects are as they were. Change them on the page of the query first, or accept: %(criterion)s.")
            % {"criterion": CRITERIA[unchanged[0]]}
        )
    # Weights that are already the current ones make no revision.
    revision = None
    if any(new_importances[entry.id] != entry.importance for entry in aspect_set.entries):
        note = f"weights: {verdicts['weights'].reason}"
        revision = revising.apply_review(review.query, review.reviewer, importances=importances, note=note, base=base)
    final = load_aspects(revision.aspects) if revision else aspect_set.entries
    answers = {
        "criteria": {name: asdict(verdicts[name]) for name in CRITERIA},
        "importances": {entry.id: entry.importance for entry in final},
        # The judged wordings: judge_documents refuses the step if they were changed afterwards.
        "set": _wordings(final),
    }
    return _append_step(review, member, Kind.ASPECTS, answers, revision)


def _wordings(entries: Entries) -> dict[str, list[str]]:
    """Return the texts and rationales of aspects by id."""
    return {entry.id: [entry.text, entry.rationale] for entry in entries}


def decisions_under_review(review: AspectReview) -> list[ReviewedDecision]:
    """Return the first person's decisions: each document kept under an aspect, and each discarded document."""
    rows = Judgment.objects.filter(pk__in=review.judgments).select_related("aspect", "pair__document")
    decisions = []
    ordered = rows.order_by("pair__document__external_id", "aspect__place", "pk")
    for document, rows_of_document in groupby(ordered, key=lambda row: row.pair.document):
        judgments = list(rows_of_document)
        kept_rows = [row for row in judgments if row.grade and row.aspect]
        name = document.external_id
        if kept_rows:
            decisions += [
                ReviewedDecision(document.pk, name, row.aspect.external_id) for row in kept_rows if row.aspect
            ]
        elif judgments:
            decisions.append(
                ReviewedDecision(document.pk, name, "", next((row.comment for row in judgments if row.comment), ""))
            )
    return decisions


@transaction.atomic
def judge_documents(review: AspectReview, member: Membership, verdicts: Mapping[str, Verdict], base: int) -> ReviewStep:
    """Store the reviewer's verdict on each decision and the changes that follow, and submit the review."""
    aspect_set = _lock_review(review)
    steps = _require_next(review, Kind.DOCUMENTS)
    # Else the review would approve wordings that the reviewer did not judge.
    if steps[Kind.ASPECTS].answers["set"] != _wordings(aspect_set.entries):
        raise BadInput(_("You changed the aspects after you judged them. Undo that step and judge them again."))
    decisions = decisions_under_review(review)
    aspect_ids = {entry.id for entry in aspect_set.entries}
    # All verdicts are checked before anything is changed.
    for decision in decisions:
        verdict = verdicts.get(decision.key)
        if verdict is None:
            raise BadInput(_("Choose “Accept” or “Change” for the document %(id)s.") % {"id": decision.external_id})
        _require_reason(verdict, decision.external_id)
        if not verdict.accept and not decision.aspect and not verdict.aspects:
            raise BadInput(_("Choose the aspects that the document %(id)s supports.") % {"id": decision.external_id})
        for name in verdict.aspects:
            if name not in aspect_ids:
                raise BadInput(_("Aspect %(id)s no longer exists. See the latest version.") % {"id": name})
    changes = _document_changes(decisions, verdicts, aspect_ids)
    # Changes that the reviewer already made on the query's page are not stored twice.
    judgments = aspect_set.current_judgments({change.aspect for change in changes})
    new_changes = []
    for change in changes:
        judgment = judgments.get((change.document, change.aspect))
        is_kept = judgment.grade > 0 if judgment is not None and judgment.grade is not None else None
        if is_kept != change.keep:
            new_changes.append(change)
    revision = None
    if new_changes:
        revision = revising.apply_review(
            review.query, review.reviewer, decisions=new_changes, note="documents", base=base
        )
    answers = [{**asdict(decision), **asdict(verdicts[decision.key])} for decision in decisions]
    step = _append_step(review, member, Kind.DOCUMENTS, {"decisions": answers}, revision)
    all_answers = [*steps[Kind.ASPECTS].answers["criteria"].values(), *answers]
    AspectReview.objects.filter(pk=review.pk).update(
        state=State.SUBMITTED,
        submitted_at=timezone.now(),
        accepted=all(answer["accept"] for answer in all_answers),
        final=AspectRevision.objects.filter(query=review.query).latest("number"),
    )
    return step


def _require_reason(verdict: Verdict, subject: str) -> None:
    if not verdict.accept and not verdict.reason:
        raise BadInput(_("Give a reason for the change: %(what)s.") % {"what": subject})


def _document_changes(
    decisions: Sequence[ReviewedDecision], verdicts: Mapping[str, Verdict], aspect_ids: set[str]
) -> list[RevisionDecision]:
    """Return the changes that follow from the verdicts "Change". Raises BadInput where two contradict each other."""
    changes: dict[tuple[int, str], RevisionDecision] = {}
    for decision in decisions:
        verdict = verdicts[decision.key]
        if verdict.accept:
            continue
        revision_decisions = [RevisionDecision(decision.document, name, True) for name in verdict.aspects]
        if decision.aspect in aspect_ids:
            revision_decisions.append(RevisionDecision(decision.document, decision.aspect, False, verdict.reason))
        # The document was discarded, which is a judgment under every aspect: it is undone for those not named.
        elif not decision.aspect:
            revision_decisions += [
                RevisionDecision(decision.document, name, None) for name in aspect_ids - set(verdict.aspects)
            ]
        for change in revision_decisions:
            earlier = changes.setdefault((change.document, change.aspect), change)
            # Two decisions on a document can keep it under an aspect and remove it from the same aspect.
            if earlier.keep != change.keep:
                raise BadInput(
                    _("You both keep and remove the document %(id)s under the aspect %(aspect)s. Choose one.")
                    % {"id": decision.external_id, "aspect": change.aspect}
                )
    return list(changes.values())


@transaction.atomic
def undo_step(review: AspectReview, member: Membership) -> None:
    """Undo a review's newest step and its revision; the reviewer's weights stay. Raises BadInput."""
    aspect_set = revising.lock_aspects(review.query)
    review.refresh_from_db()
    steps = current_steps(review)
    last = list(steps.values())[-1] if steps else None
    if last is None or last.kind == Kind.WEIGHTS or review.state not in {State.OPEN, State.SUBMITTED}:
        raise BadInput(_("There is nothing to undo in this review."))
    # The undo would also undo a later revision by another person.
    if review.state == State.SUBMITTED and (aspect_set.newest is None or aspect_set.newest.pk != review.final_id):
        raise BadInput(_("The aspects were changed after this review. It can no longer be undone."))
    if last.revision:
        revising.undo_revision(review.query, review.reviewer, last.revision.number)
    ReviewStep.objects.create(review=review, kind=Kind.UNDO, undoes=last)
    AspectReview.objects.filter(pk=review.pk).update(
        # With a new lease, because the reviewer works on it again.
        state=State.OPEN,
        leased_until=timezone.now() + LEASE,
        accepted=None,
        final=None,
        submitted_at=None,
    )
    record(member.user, "aspects.reviewed", member.collection, query=review.query.external_id, did="undo")


def _lock_review(review: AspectReview) -> LockedAspectSet:
    """Lock the query. Raises BadInput where the review is not open, or another person changed the aspects."""
    aspect_set = revising.lock_aspects(review.query)
    review.refresh_from_db()
    if review.state != State.OPEN:
        raise BadInput(_("You can no longer change this review: it was submitted, released or taken over."))
    # Revisions by the reviewer belong to the review.
    later_revisions = AspectRevision.objects.filter(query=review.query, number__gt=review.revision.number)
    if later_revisions.exclude(author=review.reviewer).exists():
        raise BadInput(_("Another person changed the aspects during your review. Release the query and start again."))
    return aspect_set


def _require_next(review: AspectReview, kind: str) -> dict[str, ReviewStep]:
    """Return the steps so far. Raises BadInput unless this kind is the next one."""
    steps = current_steps(review)
    if next_kind(steps) != kind:
        raise BadInput(_("This step is not the next one of the review. Reload the page."))
    return steps


def next_kind(steps: Mapping[str, ReviewStep]) -> str:
    """Return the kind of the next step; "" where all are done."""
    return next((kind for kind in (Kind.WEIGHTS, Kind.ASPECTS, Kind.DOCUMENTS) if kind not in steps), "")


def _append_step(
    review: AspectReview,
    member: Membership,
    kind: ReviewStep.Kind,
    answers: dict[str, Any],
    revision: AspectRevision | None = None,
) -> ReviewStep:
    """Store a step, renew the lease and record the action."""
    # So that a long review stays with its reviewer.
    AspectReview.objects.filter(pk=review.pk).update(leased_until=timezone.now() + LEASE)
    record(member.user, "aspects.reviewed", member.collection, query=review.query.external_id, did=kind.value)
    return ReviewStep.objects.create(review=review, kind=kind, answers=answers, revision=revision)
