"""API of comparisons: draw sets, read their results; get, answer and undo comparisons."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Field, Router, Schema
from ninja.decorators import decorate_view

from annotation.models import Membership
from annotation.models.comparisons import ComparisonSet
from annotation.work.comparing import page, selectors, services
from annotation.work.comparing.counting import Sources
from annotation.work.comparing.options import ComparisonAnswerOptions
from annotation.work.quality_control import onboarding
from api.authentication import JUDGE, may, scope_of
from api.idempotency import once
from api.operations import COLLECTION_PATH, operation
from api.paging import Cursor, Limit, Page, page_of
from api.problems import RequestBody

router = Router(tags=["comparisons"])
SETS_PATH = "/comparisons"


class ComparisonSetOut(Schema):
    """A set of comparisons."""

    number: int
    title: str
    state: str = Field(description="One of open, paused and ended.")
    options: dict[str, Any] = Field(description="As it was drawn.")
    comparisons: int
    people: int = Field(description="People who answer each comparison.")
    answered: int = Field(description="Answers of people.")
    created_at: datetime
    ended_at: datetime | None


class StrengthOut(Schema):
    """A document's strength by Bradley and Terry: log-odds around 0 within its query, with the 95% interval."""

    doc_id: str
    estimate: float
    low: float
    high: float
    wins: int
    losses: int
    equal: int
    both_bad: int


class ComparedQueryOut(Schema):
    """A query with its compared documents, the strongest first."""

    query_id: str
    answers: int
    documents: list[StrengthOut]


class ComparisonResultsOut(ComparisonSetOut):
    """A set with its results."""

    figures: list[dict[str, Any]] = Field(
        description="For people and for judges: answers, agreement, shares decided, equal and both bad, and of the "
        "preferred documents the share that was shown on the left; each with its 95% interval."
    )
    queries: list[ComparedQueryOut]


class ComparisonTaskOut(Schema):
    """A comparison that the person holds. `set` and `comparison` go with the answer."""

    set: int
    comparison: int
    query: str
    answers: list[str]
    instruction: str
    left_title: str
    left: str
    right_title: str
    right: str


class ComparisonQueueOut(Schema):
    """The comparisons that the person holds, the one to answer first, and their progress."""

    open: list[ComparisonTaskOut]
    answered: int
    left: int
    closed: str = Field(
        description="Why none is assigned: paused, consent, failed, untested, practice, trial, deadline."
    )


class CompareIn(RequestBody):
    """An answer, an undo, or neither."""

    answer: ComparisonAnswerOptions | None = None
    undo: bool = Field(False, description="Withdraw your last answer, whose comparison is open again.")


def _show_set(row: ComparisonSet) -> dict[str, Any]:
    row = row if hasattr(row, "size") else selectors.find_set(row.collection, row.number)
    return {
        **{name: getattr(row, name) for name in ("number", "title", "options", "people", "created_at", "ended_at")},
        "state": row.state,
        "comparisons": row.size,  # type: ignore[attr-defined]  # annotated by sets_of
        "answered": row.answered,  # type: ignore[attr-defined]
    }


def _show_queue(member: Membership) -> dict[str, Any]:
    progress = selectors.own_progress(member)
    tasks = [
        {
            "set": view.set,
            "comparison": view.seq,
            "query": view.query.text,
            "answers": [text.text for text, _html in view.answers],
            "instruction": view.need.text,
            "left_title": view.left.title.text,
            "left": view.left.document.text,
            "right_title": view.right.title.text,
            "right": view.right.document.text,
        }
        for view in selectors.open_comparisons(member)
    ]
    stop = None if tasks else onboarding.find_stop(member)
    return {
        "open": tasks,
        "answered": progress.answered,
        "left": progress.left,
        "closed": stop.kind if stop else "",
    }


operation(router, services.draw_comparisons, "POST", SETS_PATH, response=ComparisonSetOut, show=_show_set)


@router.get(COLLECTION_PATH + SETS_PATH, auth=may("admin"), response=Page[ComparisonSetOut])
def list_comparison_sets(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the sets of comparisons, oldest first."""
    return page_of(selectors.sets_of(scope_of(request).collection), after, limit, _show_set)


@router.get(f"{COLLECTION_PATH}{SETS_PATH}/{{number}}", auth=may("admin"), response=ComparisonResultsOut)
def read_comparison_set(request: HttpRequest, name: str, number: int, by: Sources = "resolved") -> Any:
    """Read a set with its results. `by`: people, machine, or resolved (people where they answered, else judges)."""
    row = selectors.find_set(scope_of(request).collection, number)
    return {**_show_set(row), **page.build_document(row, by)}


@router.post(f"{COLLECTION_PATH}/compare", auth=may("judge", JUDGE), response=ComparisonQueueOut)
@decorate_view(once)
def compare_documents(request: HttpRequest, name: str, body: CompareIn) -> Any:
    """Answer a comparison that you hold, undo your last answer, or neither; renew or get up to two comparisons.

    The same comparison answered again changes nothing.
    """
    member = scope_of(request).member
    if body.answer is not None:
        services.answer(member, body.answer)
    elif body.undo:
        services.undo(member)
    else:
        services.claim(member)
    return _show_queue(member)
