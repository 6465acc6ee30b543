"""API of comparisons: draw and control sets, read their results; claim, answer and undo comparisons."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Field, Router, Schema
from ninja.decorators import decorate_view

from annotation.models.comparisons import ComparisonSet
from annotation.work.comparing import page, selectors, services
from annotation.work.comparing.options import ComparisonAnswerOptions
from annotation.work.quality_control import onboarding
from api.authentication import JUDGE, may, scope_of
from api.idempotency import once
from api.operations import COLLECTION_PATH, estimate_operation, operation
from api.paging import Cursor, Limit, Page, page_of

router = Router(tags=["comparisons"])
SETS_PATH = "/comparisons"
COMPARE_PATH = f"{COLLECTION_PATH}/compare"


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


class RankedQueryOut(Schema):
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
    queries: list[RankedQueryOut]


class SetEstimateOut(Schema):
    """What a set would be."""

    queries: int
    documents: int
    comparisons: int
    answers: int = Field(description="Comparisons times people.")
    seconds: float = Field(description="For an answer: the median of the collection, or assumed.")
    is_assumed: bool
    minutes: int


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


def _show_set(row: ComparisonSet) -> dict[str, Any]:
    row = selectors.find_set(row.collection, row.number)
    return {
        **{name: getattr(row, name) for name in ("number", "title", "options", "people", "created_at", "ended_at")},
        "state": row.state,
        "comparisons": row.size,  # type: ignore[attr-defined]  # annotated by sets_of
        "answered": row.answered,  # type: ignore[attr-defined]
    }


def _show_queue(request: HttpRequest) -> dict[str, Any]:
    member = scope_of(request).member
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
estimate_operation(router, services.draw_comparisons, selectors.estimate_set, SETS_PATH, response=SetEstimateOut)
for act_name, service in services.SET_ACTIONS.items():
    if act_name != "delete":
        operation(
            router,
            service,
            "POST",
            f"{SETS_PATH}/{{number}}/{act_name}",
            response=ComparisonSetOut,
            status=200,
            find=selectors.find_set,
            show=_show_set,
        )
delete_path = f"{SETS_PATH}/{{number}}/delete"
operation(router, services.delete_set, "POST", delete_path, response=int, status=200, find=selectors.find_set)


@router.get(COLLECTION_PATH + SETS_PATH, auth=may("admin"), response=Page[ComparisonSetOut])
def list_comparison_sets(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the sets of comparisons, oldest first."""
    return page_of(selectors.sets_of(scope_of(request).collection), after, limit, _show_set)


@router.get(f"{COLLECTION_PATH}{SETS_PATH}/{{number}}", auth=may("admin"), response=ComparisonResultsOut)
def read_comparison_set(request: HttpRequest, name: str, number: int, by: str = "resolved") -> Any:
    """Read a set with its results. `by`: people, machine, or resolved (people where they answered, else judges)."""
    row = selectors.find_set(scope_of(request).collection, number)
    return {**_show_set(row), **page.build_document(row, by)}


# Needs no idempotency key: claiming again renews the leases of the same comparisons.
@router.post(f"{COMPARE_PATH}/claim", auth=may("judge", JUDGE), response=ComparisonQueueOut)
def claim_comparisons(request: HttpRequest, name: str) -> Any:
    """Renew the comparisons that you hold, or get the next ones."""
    services.claim(scope_of(request).member)
    return _show_queue(request)


@router.post(f"{COMPARE_PATH}/answer", auth=may("judge", JUDGE), response=ComparisonQueueOut)
@decorate_view(once)
def answer_comparison(request: HttpRequest, name: str, body: ComparisonAnswerOptions) -> Any:
    """Answer a comparison that you hold; answered again it changes nothing."""
    services.answer(scope_of(request).member, body)
    return _show_queue(request)


@router.post(f"{COMPARE_PATH}/undo", auth=may("judge", JUDGE), response=ComparisonQueueOut)
@decorate_view(once)
def undo_comparison(request: HttpRequest, name: str) -> Any:
    """Withdraw your last answer, whose comparison is open again."""
    services.undo(scope_of(request).member)
    return _show_queue(request)
