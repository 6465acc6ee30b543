"""API of adjudication: read the next conflict between annotators, resolve it, undo the decision."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Field, Router, Schema
from ninja.decorators import decorate_view

from annotation.access.permissions import Scope
from annotation.work.adjudication import conflicts
from annotation.work.judging import forms, page
from annotation.work.judging.api import BIG, DecidedIn, PairTextsOut, show_texts
from annotation.work.judging.forms import LONGEST
from api.authentication import JUDGE, may, scope_of
from api.idempotency import once
from api.problems import RequestBody, clean_text

router = Router(tags=["adjudication"])


class ReplyOut(Schema):
    """An answer to a comment or flag: a text, an outcome, or both."""

    author: str
    text: str
    outcome: str
    at: datetime


class OpinionOut(Schema):
    """An annotator's opinion of the pair, without a name: a grade, a flag, or why skipped."""

    number: int
    grade: int | None
    comment: str
    flagged: bool
    note: str
    replies: list[ReplyOut]


class ConflictOut(PairTextsOut):
    """A pair that annotators could not settle. `item` and `shown` go with the decision on it."""

    item: int
    shown: str
    why: str
    opinions: list[OpinionOut]


class ConflictsOut(Schema):
    """The conflict to decide, if any; the item of your own last decision, which can be undone."""

    conflict: ConflictOut | None
    waiting: int
    last_item: int | None


class DecisionIn(RequestBody):
    """The decision on a conflict."""

    item: int = Field(ge=0, lt=BIG)
    shown: str = Field("", max_length=500, description="As the conflict was read with: it says since when.")
    grade: int = Field(ge=0, le=100)
    comment: str = Field("", max_length=LONGEST)
    milliseconds: int | None = Field(None, ge=0, le=86_400_000, description="Time that the person spent on it.")


@router.get("/collections/{slug:name}/conflict", auth=may("adjudicate", JUDGE), response=ConflictsOut)
def read_conflict(request: HttpRequest, name: str, leave: int | None = None) -> Any:
    """Read a conflict that waits; `leave` names the item of one that is left for later."""
    # A number beyond the column's range names no item; the database would refuse it with an error.
    return _show_conflict(scope_of(request), after=leave if leave is not None and 0 <= leave < BIG else None)


@router.post("/collections/{slug:name}/conflict/resolve", auth=may("adjudicate", JUDGE), response=ConflictsOut)
@decorate_view(once)
def resolve_conflict(request: HttpRequest, name: str, body: DecisionIn) -> Any:
    """Resolve a conflict; the next one comes with the answer."""
    scope = scope_of(request)
    conflicts.adjudicate(
        scope.member,
        body.item,
        forms.check_grade(body.grade, scope.collection),
        comment=clean_text(body.comment),
        milliseconds=body.milliseconds,
        # From the signed stamp the server knows how long the conflict was open; `milliseconds` is the
        # client's measure.
        shown_ms=forms.parse_shown({"shown": body.shown}, forms.CONFLICT, scope.member, body.item),
    )
    return _show_conflict(scope)


@router.post("/collections/{slug:name}/conflict/undo", auth=may("adjudicate", JUDGE), response=ConflictsOut)
@decorate_view(once)
def undo_resolution(request: HttpRequest, name: str, body: DecidedIn) -> Any:
    """Take your own decision back; the conflict comes with the answer."""
    scope = scope_of(request)
    conflicts.undo_adjudication(scope.member, body.item)
    return _show_conflict(scope, show=body.item)


def _show_conflict(scope: Scope, *, after: int | None = None, show: int | None = None) -> dict[str, Any]:
    member = scope.member
    item, count = conflicts.choose_conflict(conflicts.find_conflicts(member), after=after, show=show)
    conflict = None
    if item is not None:
        opinions = conflicts.list_opinions(item)
        conflict = {
            **show_texts(page.conflict_task(scope.collection, item.pk), scope.collection.grades),
            "item": item.pk,
            "shown": forms.stamp_shown(forms.CONFLICT, member, item.pk),
            "why": conflicts.why_conflict(opinions),
            "opinions": [row | {"replies": getattr(row.get("thread"), "replies", [])} for row in opinions],
        }
    return {"conflict": conflict, "waiting": count, "last_item": conflicts.last_decision(member)}
