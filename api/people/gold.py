"""Gold questions: samples that experts grade, their progress and answers; the expert's and the reviewer's next pair."""

from datetime import datetime
from typing import Annotated, Any

from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Field, Router, Schema, Status
from ninja.decorators import decorate_view

from annotation.judging import forms
from annotation.judging.forms import LONGEST, Invalid
from annotation.judging.gold_tasks import build_gold_task
from annotation.models import Membership
from annotation.models.quality_control import GoldAnswer, GoldPair, GoldSet
from annotation.permissions import Scope
from annotation.quality_control import gold
from api.authentication import may, scope_of
from api.idempotency import once
from api.models import AccessToken
from api.people.quality_control import Seed, Size
from api.people.tasks import BIG, PairTextsOut, show_texts
from api.problems import CleanText, Given
from api.routes.pages import Cursor, Limit, Page, page_of
from corpus.errors import BadInput
from corpus.numbered import numbered_or_404

router = Router(tags=["gold"])
MANAGE, JUDGE = AccessToken.TokenScope.MANAGE, AccessToken.TokenScope.JUDGE
Who = GoldAnswer.Who


class GoldIn(Given):
    """A sample that experts grade."""

    size: Size = 50
    seed: Seed = 0
    spot: float = Field(0.2, ge=0, le=1, description="The share that somebody else reviews.")


class GoldOut(Schema):
    """A gold sample, and how far experts and reviewers are; practice pairs are not counted."""

    number: int
    seed: int
    spot: float
    created_at: datetime
    ended_at: datetime | None
    pairs: int
    graded: int
    relevant: int
    spots: int
    looked: int = Field(description="Reviewed.")
    done: bool


class GoldAnswerOut(Schema):
    """Grade of a gold pair by an expert, or by a reviewer after them."""

    username: str
    who: str = Field(description="expert or senior.")
    grade: int
    comment: str
    created_at: datetime


class GoldPairOut(Schema):
    """A pair of a gold sample with what was said about it."""

    number: int
    pair: int
    query: str
    document: str
    practice: bool
    spot: bool
    stratum: str
    answers: list[GoldAnswerOut]


class GoldTaskOut(PairTextsOut):
    """A gold pair to grade. `pair` and `shown` go with the grade."""

    pair: int
    shown: str
    practice: bool


class GoldQueueOut(Schema):
    """The gold pair to grade next, if any."""

    task: GoldTaskOut | None


class GoldGradeIn(Given):
    """A grade of a gold pair."""

    pair: int = Field(ge=0, lt=BIG)
    shown: CleanText = Field("", max_length=500, description="As the pair was read with: it says since when.")
    grade: int = Field(ge=0, le=100)
    comment: Annotated[CleanText, Field(max_length=LONGEST)] = ""
    milliseconds: int | None = Field(None, ge=0, le=86_400_000, description="Time that the person spent on it.")


@router.get("/collections/{slug:name}/gold", auth=may("admin"), response=Page[GoldOut])
def list_gold(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the gold samples, the oldest first."""
    # One count for all samples: a collection has few, and each alone would be a statement of its own.
    progress = _progress_of(request)
    return page_of(_samples(request), after, limit, lambda row: progress[row.number])


@router.post("/collections/{slug:name}/gold", auth=may("admin", MANAGE), response={201: GoldOut})
@decorate_view(once)
def draw_gold(request: HttpRequest, name: str, body: GoldIn) -> Any:
    """Draw a gold sample, one random pair of each query, with practice pairs; experts grade it."""
    scope = scope_of(request)
    made = gold.draw(collection=scope.collection, by=scope.user, **body.dict())
    return Status(201, _progress_of(request)[made.number])


@router.get("/collections/{slug:name}/gold/task", auth=may("judge", JUDGE), response=GoldQueueOut)
def read_gold_task(request: HttpRequest, name: str) -> Any:
    """Read the next gold pair that you grade as an expert, with an argument for and one against."""
    scope = scope_of(request)
    return _show_queue(scope, gold.next_for_expert(_expert(scope)))


@router.post("/collections/{slug:name}/gold/task", auth=may("judge", JUDGE), response=GoldQueueOut)
@decorate_view(once)
def grade_gold(request: HttpRequest, name: str, body: GoldGradeIn) -> Any:
    """Grade a gold pair as an expert; the next one comes with the answer."""
    scope = scope_of(request)
    _record_grade(scope, _expert(scope), Who.EXPERT, body)
    return _show_queue(scope, gold.next_for_expert(scope.member))


@router.get("/collections/{slug:name}/gold/review", auth=may("adjudicate", JUDGE), response=GoldQueueOut)
def read_gold_review(request: HttpRequest, name: str) -> Any:
    """Read the next gold pair that you review; what the expert said is not shown."""
    scope = scope_of(request)
    # The reviewer grades as blindly as the expert did: what the expert said is not in the answer.
    return _show_queue(scope, gold.next_for_senior(scope.member))


@router.post("/collections/{slug:name}/gold/review", auth=may("adjudicate", JUDGE), response=GoldQueueOut)
@decorate_view(once)
def review_gold(request: HttpRequest, name: str, body: GoldGradeIn) -> Any:
    """Grade a gold pair as a reviewer; the next one comes with the answer."""
    scope = scope_of(request)
    _record_grade(scope, scope.member, Who.SENIOR, body)
    return _show_queue(scope, gold.next_for_senior(scope.member))


@router.get("/collections/{slug:name}/gold/{number}", auth=may("admin"), response=GoldOut)
def read_gold(request: HttpRequest, name: str, number: int) -> Any:
    """Read how far a gold sample is."""
    return _progress_of(request)[_find_sample(request, number).number]


@router.get("/collections/{slug:name}/gold/{number}/pairs", auth=may("admin"), response=Page[GoldPairOut])
def list_gold_pairs(request: HttpRequest, name: str, number: int, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the pairs of a gold sample with what was said about each."""
    rows = GoldPair.objects.filter(gold_set=_find_sample(request, number))
    rows = rows.select_related("pair__query", "pair__document").prefetch_related("answers__membership__user")
    return page_of(rows, after, limit, _show_pair)


@router.post("/collections/{slug:name}/gold/{number}/end", auth=may("admin", MANAGE), response=GoldOut)
@decorate_view(once)
def end_gold(request: HttpRequest, name: str, number: int) -> Any:
    """End a gold sample: no more of its pairs are handed out; the grades stay."""
    found = _find_sample(request, number)
    gold.end(gold_set=found, by=scope_of(request).user)
    return _progress_of(request)[found.number]


def _samples(request: HttpRequest) -> Any:
    return GoldSet.objects.select_related("collection").filter(collection=scope_of(request).collection)


def _find_sample(request: HttpRequest, number: int) -> GoldSet:
    rows, collection = _samples(request), scope_of(request).collection
    found: GoldSet = numbered_or_404(rows, collection, number, _("Gold sample not found."))
    return found


def _progress_of(request: HttpRequest) -> dict[int, dict[str, Any]]:
    """Return each gold sample of the collection as GoldOut has it, by number."""
    found = {}
    for one in gold.list_progress(scope_of(request).collection):
        row: GoldSet = one["gold_set"]
        facts = {name: getattr(row, name) for name in ("seed", "spot", "created_at", "ended_at")}
        counts = {name: one[name] for name in ("pairs", "graded", "relevant", "spots", "looked", "done")}
        found[row.number] = {"number": row.number, **facts, **counts}
    return found


def _show_pair(row: GoldPair) -> dict[str, Any]:
    named = {"query": row.pair.query.external_id, "document": row.pair.document.external_id}
    said = [
        {"username": one.membership.user.username, "who": one.who, "grade": one.grade, "comment": one.comment}
        | {"created_at": one.created_at}
        # Sorted here, for an order in the query would not use what was prefetched.
        for one in sorted(row.answers.all(), key=lambda one: one.pk)
    ]
    facts = {name: getattr(row, name) for name in ("practice", "spot", "stratum")}
    return {"number": row.pk, "pair": row.pair_id, **named, **facts, "answers": said}


def _expert(scope: Scope) -> Membership:
    """Return the member. Raises BadInput for one who is no expert."""
    if not scope.member.is_expert:
        raise BadInput(_("Only experts grade gold pairs. An admin can make you one."))
    return scope.member


def _record_grade(scope: Scope, member: Membership, who: str, body: GoldGradeIn) -> None:
    if body.grade > scope.collection.grades:
        raise Invalid(
            _("%(value)s is outside the scale of 0 to %(grades)s. Nothing was saved.")
            % {"value": body.grade, "grades": scope.collection.grades}
        )
    gold.record_answer(
        membership=member,
        gold_pair=body.pair,
        who=who,
        grade=body.grade,
        comment=body.comment,
        milliseconds=body.milliseconds,
        shown_ms=forms.parse_shown({"shown": body.shown}, forms.GOLD, member, body.pair),
    )


def _show_queue(scope: Scope, row: GoldPair | None) -> dict[str, Any]:
    if row is None:
        return {"task": None}
    texts = show_texts(build_gold_task(scope.collection, row), scope.collection.grades)
    shown = forms.stamp_shown(forms.GOLD, scope.member, row.pk)
    return {"task": {**texts, "pair": row.pk, "shown": shown, "practice": row.practice}}
