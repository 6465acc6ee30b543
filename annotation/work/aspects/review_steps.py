"""The three steps of a review, in the paper's order (BRIGHT-Pro app. B): own weights, the aspects, then each document.

The first person's weights are not shown before the reviewer gave their own. In the two other steps
each criterion and each decision is accepted, or changed with a reason; the change is made in the
same transaction, as a revision.
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

# What a reviewer says of the aspects (BRIGHT-Pro 3.3, app. B).
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
    aspects: tuple[str, ...] = ()  # Those that the document supports, where the decision about it is changed.


@dataclass(frozen=True, slots=True)
class ReviewedDecision:
    """A decision of the first person: a document kept under an aspect, or discarded (`aspect` ""), with the reason."""

    document: int
    external_id: str
    aspect: str = ""
    reason: str = ""

    @property
    def key(self) -> str:
        """Return the step's name in the form: document and aspect."""
        return f"{self.document}-{self.aspect}"


@transaction.atomic
def give_weights(review: AspectReview, member: Membership, importances: Mapping[str, int]) -> ReviewStep:
    """Keep the reviewer's importances, given once. BadInput unless every aspect has one."""
    _hold(review)
    # Own weights count only when given blind (BRIGHT-Pro app. B): after this step the first ones are on the page.
    before = current_steps(review).get(Kind.WEIGHTS)
    if before is not None and before.answers["importances"] == dict(importances):
        return before  # The same form sent twice.
    if before is not None:
        raise BadInput(_("You have already given your weights. They cannot be changed once you saw the first ones."))
    if set(importances) != {entry.id for entry in load_aspects(review.revision.aspects)}:
        raise BadInput(_("Weigh every aspect of the query."))
    given = {name: check_importance(value) for name, value in importances.items()}
    return _append(review, member, Kind.WEIGHTS, {"importances": given})


@transaction.atomic
def judge_aspects(
    review: AspectReview, member: Membership, verdicts: Mapping[str, Verdict], importances: Mapping[str, int], base: int
) -> ReviewStep:
    """Keep what the reviewer says of each criterion, and change the weights where they say so."""
    held = _hold(review)
    _require_next(review, Kind.ASPECTS)
    for name, title in CRITERIA.items():
        if name not in verdicts:
            raise BadInput(_("Choose “Accept” or “Change” for: %(criterion)s.") % {"criterion": title})
        _require_reason(verdicts[name], str(title))
    _check_changes(review, held.entries, verdicts, importances)
    # The form is compared with what holds, so that a weight left as it was makes no revision.
    changed = {entry.id for entry in held.entries if importances.get(entry.id, entry.importance) != entry.importance}
    revision = None
    if changed:
        note = f"weights: {verdicts['weights'].reason}"
        revision = revising.apply_review(review.query, review.reviewer, importances=importances, note=note, base=base)
    # What the revision stored is what the step records.
    final = load_aspects(revision.aspects) if revision else held.entries
    answers = {
        "criteria": {name: asdict(verdicts[name]) for name in CRITERIA},
        "importances": {entry.id: entry.importance for entry in final},
        # The wordings as judged: judge_documents refuses when they changed afterwards.
        "set": _wordings(final),
    }
    return _append(review, member, Kind.ASPECTS, answers, revision)


def _check_changes(
    review: AspectReview, entries: Entries, verdicts: Mapping[str, Verdict], importances: Mapping[str, int]
) -> None:
    """BadInput unless what is called changed was changed, and what was changed is called so."""
    # Compared with the revision under review, not with what holds: the reviewer may have edited on the query's page.
    first = {entry.id: entry.importance for entry in load_aspects(review.revision.aspects)}
    reworded = _wordings(load_aspects(review.revision.aspects)) != _wordings(entries)
    reweighed = any(
        importances.get(entry.id, entry.importance) != first[entry.id] for entry in entries if entry.id in first
    )
    if verdicts["weights"].accept and reweighed:
        raise BadInput(_("Some weights differ from the first ones. Choose “Change” for the weights and say why."))
    if not (verdicts["weights"].accept or reweighed or reworded):
        raise BadInput(_("The weights are as they were. Change at least one of them, or choose “Accept”."))
    of_the_set = [name for name in ("granularity", "balance", "coverage") if not verdicts[name].accept]
    if reworded and not of_the_set:
        raise BadInput(_("You changed the aspects. Choose “Change” for granularity, balance or coverage and say why."))
    # An unbalanced set may be mended by weights; granularity and coverage need other words.
    unmade = [name for name in of_the_set if not (reworded or (name == "balance" and reweighed))]
    if unmade:
        raise BadInput(
            _("The aspects are as they were. Change them on the page of the query first, or accept: %(criterion)s.")
            % {"criterion": CRITERIA[unmade[0]]}
        )


def _wordings(entries: Entries) -> dict[str, list[str]]:
    """The set without its weights."""
    return {entry.id: [entry.text, entry.rationale] for entry in entries}


def decisions_under_review(review: AspectReview) -> list[ReviewedDecision]:
    """The first person's decisions as they were found: each document kept under an aspect, each document discarded."""
    rows = Judgment.objects.filter(pk__in=review.judgments).select_related("aspect", "pair__document")
    found = []
    ordered = rows.order_by("pair__document__external_id", "aspect__place", "pk")
    # One person's rows on a document lie together after the order above, which groupby needs.
    for document, some in groupby(ordered, key=lambda row: row.pair.document):
        said = list(some)
        kept = [row for row in said if row.grade and row.aspect]
        # An aspect that was removed since leaves its judgments without one.
        name = document.external_id
        if kept:
            found += [ReviewedDecision(document.pk, name, row.aspect.external_id) for row in kept if row.aspect]
        elif said:
            found.append(
                ReviewedDecision(document.pk, name, "", next((row.comment for row in said if row.comment), ""))
            )
    return found


@transaction.atomic
def judge_documents(review: AspectReview, member: Membership, verdicts: Mapping[str, Verdict], base: int) -> ReviewStep:
    """Keep what the reviewer says of each decision, change what they changed, submit the review."""
    held = _hold(review)
    steps = _require_next(review, Kind.DOCUMENTS)
    # A step that judged other words than the ones that hold would approve what nobody saw.
    if steps[Kind.ASPECTS].answers["set"] != _wordings(held.entries):
        raise BadInput(_("You changed the aspects after you judged them. Undo that step and judge them again."))
    decisions = decisions_under_review(review)
    known = {entry.id for entry in held.entries}
    # All are checked before anything is changed: the page comes back with the first problem and nothing half done.
    for one in decisions:
        if (verdict := verdicts.get(one.key)) is None:
            raise BadInput(_("Choose “Accept” or “Change” for the document %(id)s.") % {"id": one.external_id})
        _require_reason(verdict, one.external_id)
        if not verdict.accept and not one.aspect and not verdict.aspects:
            raise BadInput(_("Choose the aspects that the document %(id)s supports.") % {"id": one.external_id})
        for name in verdict.aspects:
            if name not in known:
                raise BadInput(_("Aspect %(id)s no longer exists. See the latest version.") % {"id": name})
    changes = _document_changes(decisions, verdicts, known)
    # What the reviewer already changed on the query's page is not appended a second time.
    standing = held.current_judgments({change.aspect for change in changes})
    left = []
    for change in changes:
        before = standing.get((change.document, change.aspect))
        if (None if before is None or before.grade is None else before.grade > 0) != change.keep:
            left.append(change)
    revision = None
    if left:
        revision = revising.apply_review(review.query, review.reviewer, decisions=left, note="documents", base=base)
    said = [{**asdict(one), **asdict(verdicts[one.key])} for one in decisions]
    step = _append(review, member, Kind.DOCUMENTS, {"decisions": said}, revision)
    said = [*steps[Kind.ASPECTS].answers["criteria"].values(), *step.answers["decisions"]]
    AspectReview.objects.filter(pk=review.pk).update(
        state=State.SUBMITTED,
        submitted_at=timezone.now(),
        accepted=all(one["accept"] for one in said),
        final=AspectRevision.objects.filter(query=review.query).latest("number"),
    )
    return step


def _require_reason(verdict: Verdict, what: str) -> None:
    if not verdict.accept and not verdict.reason:
        raise BadInput(_("Give a reason for the change: %(what)s.") % {"what": what})


def _document_changes(
    decisions: Sequence[ReviewedDecision], verdicts: Mapping[str, Verdict], known: set[str]
) -> list[RevisionDecision]:
    """Return the revision decisions that follow from changed ones. Raises BadInput where two contradict each other."""
    changes: dict[tuple[int, str], RevisionDecision] = {}
    for one in decisions:
        verdict = verdicts[one.key]
        if verdict.accept:
            continue
        made = [RevisionDecision(one.document, name, True) for name in verdict.aspects]
        if one.aspect in known:
            made.append(RevisionDecision(one.document, one.aspect, False, verdict.reason))
        elif not one.aspect:  # It was discarded from all: from the others it is taken back.
            made += [RevisionDecision(one.document, name, None) for name in known - set(verdict.aspects)]
        for change in made:
            before = changes.setdefault((change.document, change.aspect), change)
            # Two decisions on a document can meet on one aspect: kept by one, removed by the other.
            if before.keep != change.keep:
                raise BadInput(
                    _("You both keep and remove the document %(id)s under the aspect %(aspect)s. Choose one.")
                    % {"id": one.external_id, "aspect": change.aspect}
                )
    return list(changes.values())


@transaction.atomic
def undo_step(review: AspectReview, member: Membership) -> None:
    """Undo a review's newest step with what it changed; the reviewer's weights stay."""
    held = revising.lock_aspects(review.query)
    review.refresh_from_db()
    steps = current_steps(review)
    last = list(steps.values())[-1] if steps else None
    if last is None or last.kind == Kind.WEIGHTS or review.state not in {State.OPEN, State.SUBMITTED}:
        raise BadInput(_("There is nothing to undo in this review."))
    # An undo behind somebody else's revision would take back their change too.
    if review.state == State.SUBMITTED and (held.newest is None or held.newest.pk != review.final_id):
        raise BadInput(_("The aspects were changed after this review. It can no longer be undone."))
    if last.revision:
        revising.undo_revision(review.query, review.reviewer, last.revision.number)
    ReviewStep.objects.create(review=review, kind=Kind.UNDO, undoes=last)
    AspectReview.objects.filter(pk=review.pk).update(
        # The lease starts anew: the reviewer comes back to work on it.
        state=State.OPEN,
        leased_until=timezone.now() + LEASE,
        accepted=None,
        final=None,
        submitted_at=None,
    )
    record(member.user, "aspects.reviewed", member.collection, query=review.query.external_id, did="undo")


def _hold(review: AspectReview) -> LockedAspectSet:
    """Lock the query. BadInput for somebody else's review, or where the aspects changed."""
    held = revising.lock_aspects(review.query)
    review.refresh_from_db()
    if review.state != State.OPEN:
        raise BadInput(_("This review is no longer yours to change: it was submitted, released or taken over."))
    # The reviewer's own revisions, made through this review, are no reason to start again.
    since = AspectRevision.objects.filter(query=review.query, number__gt=review.revision.number)
    if since.exclude(author=review.reviewer).exists():
        raise BadInput(_("Another person changed the aspects during your review. Release the query and start again."))
    return held


def _require_next(review: AspectReview, kind: str) -> dict[str, ReviewStep]:
    """The steps so far. BadInput unless this one comes next."""
    steps = current_steps(review)
    if next_kind(steps) != kind:
        raise BadInput(_("This step is not the next one of the review. Reload the page."))
    return steps


def next_kind(steps: Mapping[str, ReviewStep]) -> str:
    """The step that comes next; "" when all are done."""
    return next((kind for kind in (Kind.WEIGHTS, Kind.ASPECTS, Kind.DOCUMENTS) if kind not in steps), "")


def _append(
    review: AspectReview,
    member: Membership,
    kind: ReviewStep.Kind,
    answers: dict[str, Any],
    revision: AspectRevision | None = None,
) -> ReviewStep:
    # Every step renews the lease: a long review is not taken away while somebody works on it.
    AspectReview.objects.filter(pk=review.pk).update(leased_until=timezone.now() + LEASE)
    record(member.user, "aspects.reviewed", member.collection, query=review.query.external_id, did=kind.value)
    return ReviewStep.objects.create(review=review, kind=kind, answers=answers, revision=revision)
