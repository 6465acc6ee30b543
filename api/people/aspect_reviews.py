"""The second person's review of aspects: take a query, give own weights, judge aspects and documents, undo, release."""

from datetime import datetime
from typing import Annotated, Any, Literal

from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Field, Router, Schema
from ninja.decorators import decorate_view

from annotation.aspects import review_steps, reviews
from annotation.aspects.review_steps import LONGEST_REASON, Verdict
from annotation.aspects.second import shuffle_aspects
from annotation.permissions import Scope
from api.authentication import may, scope_of
from api.idempotency import once
from api.models import AccessToken
from api.people.aspects import Importances, Name, require_admitted
from api.problems import CleanText, Given
from api.routes.pages import Cursor, Limit, Page, find_row, page_of
from corpus.aspects.entries import MOST, load_aspects
from corpus.aspects.revising import newest_revision
from corpus.errors import BadInput
from corpus.models.aspects import AspectReview, ReviewStep

router = Router(tags=["aspects"])
JUDGE = AccessToken.TokenScope.JUDGE
Criterion = Literal["granularity", "balance", "coverage", "weights"]


class VerdictIn(Given):
    """Accepted, or changed with the reason."""

    accept: bool
    reason: Annotated[CleanText, Field(max_length=LONGEST_REASON)] = ""


class DocumentVerdictIn(VerdictIn):
    """Verdict on a decision about a document; where it is changed, the aspects that the document supports instead."""

    document: Name
    aspect: Name = Field("", description="Under which it was kept; empty: it was discarded.")
    aspects: list[Name] = Field([], max_length=MOST)


class WeightsIn(Given):
    """Your own importance of each aspect, given before you see the first ones."""

    importances: Importances


class CriteriaIn(Given):
    """Verdicts on the aspects by criterion, and new importances where the weights are changed."""

    base: int = Field(ge=0, lt=1 << 31, description="The revision that you read.")
    criteria: dict[Criterion, VerdictIn]
    importances: Importances = {}


class DecisionsIn(Given):
    """Verdicts on all decisions about documents."""

    base: int = Field(ge=0, lt=1 << 31, description="The revision that you read.")
    decisions: list[DocumentVerdictIn] = Field(max_length=2_000)


class ReviewOut(Schema):
    """A review of a query's aspects."""

    number: int
    query: str
    reviewer: str
    state: str = Field(description="open, submitted or released.")
    accepted: bool | None
    created_at: datetime
    submitted_at: datetime | None


class ReviewedAspectOut(Schema):
    """An aspect under review; without importances until the reviewer gave theirs."""

    id: str
    text: str
    rationale: str
    importance: int | None
    first: int | None = Field(description="The first person's importance.")


class ReviewedDocumentOut(Schema):
    """The first person's decision on a document."""

    document: str
    aspect: str
    reason: str


class ReviewTaskOut(ReviewOut):
    """A review with the step that comes next: weights, aspects, documents, or (empty) none for you."""

    query_number: int
    mine: bool
    step: str
    base: int
    aspects: list[ReviewedAspectOut]
    documents: list[ReviewedDocumentOut]
    said: dict[str, Any] = Field(description="What was said in each step so far.")


@router.get("/collections/{slug:name}/aspect-reviews", auth=may("adjudicate"), response=Page[ReviewOut])
def list_reviews(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the reviews of aspects, the oldest first."""
    return page_of(_reviews(scope_of(request)).exclude(state=AspectReview.State.EXPIRED), after, limit, _show_review)


@router.post(
    "/collections/{slug:name}/aspect-reviews/claim",
    auth=may("adjudicate", JUDGE),
    response=ReviewTaskOut,
)
@decorate_view(once)
def claim_review(request: HttpRequest, name: str) -> Any:
    """Take the next query to review, or the one that you hold."""
    scope = scope_of(request)
    require_admitted(scope)
    return _show_task(scope, reviews.claim_review(scope.member).pk)


@router.get(
    "/collections/{slug:name}/aspect-reviews/{number}",
    auth=may("adjudicate"),
    response=ReviewTaskOut,
)
def read_review(request: HttpRequest, name: str, number: int) -> Any:
    """Read a review: your own with its next step, or what was said in it."""
    return _show_task(scope_of(request), number)


@router.post(
    "/collections/{slug:name}/aspect-reviews/{number}/weights",
    auth=may("adjudicate", JUDGE),
    response=ReviewTaskOut,
)
@decorate_view(once)
def give_weights(request: HttpRequest, name: str, number: int, body: WeightsIn) -> Any:
    """Give your own weights, once and before you see the first ones."""
    scope = scope_of(request)
    require_admitted(scope)
    review_steps.give_weights(_find_own(scope, number), scope.member, body.importances)
    return _show_task(scope, number)


@router.post(
    "/collections/{slug:name}/aspect-reviews/{number}/aspects",
    auth=may("adjudicate", JUDGE),
    response=ReviewTaskOut,
)
@decorate_view(once)
def judge_aspects(request: HttpRequest, name: str, number: int, body: CriteriaIn) -> Any:
    """Accept or change granularity, balance, coverage and weights of the aspects."""
    scope = scope_of(request)
    require_admitted(scope)
    said: dict[str, Verdict] = {key: _verdict(one) for key, one in body.criteria.items()}
    review_steps.judge_aspects(_find_own(scope, number), scope.member, said, body.importances, body.base)
    return _show_task(scope, number)


@router.post(
    "/collections/{slug:name}/aspect-reviews/{number}/documents",
    auth=may("adjudicate", JUDGE),
    response=ReviewTaskOut,
)
@decorate_view(once)
def judge_documents(request: HttpRequest, name: str, number: int, body: DecisionsIn) -> Any:
    """Accept or change each decision on a document, and submit the review."""
    scope = scope_of(request)
    require_admitted(scope)
    own = _find_own(scope, number)
    # Requests name documents and aspects; the service knows decisions by their keys.
    keys = {(one.external_id, one.aspect): one.key for one in review_steps.decisions_under_review(own)}
    said = {}
    for one in body.decisions:
        key = keys.get((one.document, one.aspect))
        if key is None:
            raise BadInput(_("No decision is about the document %(id)s there.") % {"id": one.document})
        # The aspect that a decision is about is no change of it, and each other one counts once.
        aspects = tuple(dict.fromkeys(name for name in one.aspects if name != one.aspect))
        said[key] = Verdict(one.accept, _reason(one), () if one.accept else aspects)
    review_steps.judge_documents(own, scope.member, said, body.base)
    return _show_task(scope, number)


@router.post(
    "/collections/{slug:name}/aspect-reviews/{number}/{act}",
    auth=may("adjudicate", JUDGE),
    response=ReviewTaskOut,
)
@decorate_view(once)
def control_review(request: HttpRequest, name: str, number: int, act: Literal["undo", "release"]) -> Any:
    """Undo the newest step of your review, or release the query to another person."""
    scope = scope_of(request)
    own = _find_own(scope, number)
    if act == "undo":
        require_admitted(scope)
        review_steps.undo_step(own, scope.member)
    else:
        # The release and its line in the audit log stand together or not at all.
        with transaction.atomic():
            reviews.release_review(scope.member, own)
    return _show_task(scope, number)


def _verdict(one: VerdictIn) -> Verdict:
    return Verdict(one.accept, _reason(one))


def _reason(one: VerdictIn) -> str:
    return "" if one.accept else " ".join(one.reason.split())


def _reviews(scope: Scope) -> Any:
    rows = AspectReview.objects.select_related("query__collection", "revision__author", "reviewer")
    return rows.filter(query__collection=scope.collection)


def _find_own(scope: Scope, number: int) -> AspectReview:
    """Return a review whose reviewer is the member who asks. Raises Http404."""
    rows = _reviews(scope).filter(reviewer=scope.member.assessor)
    found: AspectReview = find_row(rows, number, _("Review not found."))
    return found


def _show_review(row: AspectReview) -> dict[str, Any]:
    shown = ("state", "accepted", "created_at", "submitted_at")
    named = {"number": row.pk, "query": row.query.external_id, "reviewer": row.reviewer.name}
    return {**named, **{name: getattr(row, name) for name in shown}}


def _show_task(scope: Scope, number: int) -> dict[str, Any]:
    row: AspectReview = find_row(_reviews(scope), number, _("Review not found."))
    mine = row.reviewer_id == scope.member.assessor_id
    steps = reviews.current_steps(row)
    newest = newest_revision(row.query)
    step = review_steps.next_kind(steps) if mine and row.state == AspectReview.State.OPEN else ""
    # Importances given after seeing the first person's would not be a second opinion.
    blind = step == ReviewStep.Kind.WEIGHTS
    return {
        **_show_review(row),
        "query_number": row.query_id,
        "mine": mine,
        "step": step,
        "base": newest.number if newest else 0,
        "aspects": _show_aspects(row, blind=blind),
        "documents": [] if blind else _show_documents(row),
        "said": {} if blind else {kind: one.answers for kind, one in steps.items()},
    }


def _show_aspects(row: AspectReview, *, blind: bool) -> list[dict[str, Any]]:
    """Return the current aspects; `blind`: those under review, shuffled and without importances."""
    before = load_aspects(row.revision.aspects)
    newest = newest_revision(row.query)
    # Shuffled by the review's number: the order says nothing of the weights, and is the same at each reading.
    entries = shuffle_aspects(before, f"review {row.pk}") if blind else load_aspects(newest.aspects) if newest else ()
    first = {} if blind else {entry.id: entry.importance for entry in before}
    return [
        {
            "id": entry.id,
            "text": entry.text,
            "rationale": entry.rationale,
            "importance": None if blind else entry.importance,
            "first": first.get(entry.id),
        }
        for entry in entries
    ]


def _show_documents(row: AspectReview) -> list[dict[str, Any]]:
    found = review_steps.decisions_under_review(row)
    return [{"document": one.external_id, "aspect": one.aspect, "reason": one.reason} for one in found]
