"""All waiting pairs of a query on one page: the query pinned, one key for each document."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from django.core.exceptions import BadRequest
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe
from psycopg import Connection

from annotation import guidelines
from annotation.judging import page, submitting
from annotation.judging.forms import Invalid, answer, skip_reason, text
from annotation.judging.forms import item as item_of
from annotation.judging.views.judging import evenly
from annotation.models import Assignment
from annotation.permissions import Scope, action
from annotation.queue import assignment, undo
from annotation.queue.annotators import AnnotatorContext


@action("judge")
@require_safe
def judge_query(request: HttpRequest, scope: Scope) -> HttpResponse:
    """The pairs that the member holds; reading never claims."""
    works = page.group(scope.member)
    if works and works[0].only_alone:
        return HttpResponseRedirect(reverse("judge", args=[scope.collection.name]))
    collection = scope.collection
    desktop = page.around(scope.member)
    context = {**_common(scope), "works": works, "work": works[0] if works else None, "desktop": desktop}
    context |= {"guidelines": guidelines.current(collection), "section": "judge"}
    return render(request, "judging/query.html", context)


@action("judge")
@require_POST
@evenly
def judge_query_next(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Claim the pairs of the next query; those that are held already are renewed."""
    desk = AnnotatorContext.of(scope.member)
    assignment.in_transaction(lambda db: submitting.claim_query(db, desk))
    return HttpResponseRedirect(reverse("judge_query", args=[scope.collection.name]), status=303)


@action("judge")
@require_POST
def judge_query_submit(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Settle one pair: its card again, judged, or in the reveal arm with its debate."""
    desk = AnnotatorContext.of(scope.member)
    return _decide(request, scope, lambda db: assignment.settle(db, desk, answer(request.POST, scope.member)))


@action("judge")
@require_POST
def judge_query_skip(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Give one pair back with a reason."""
    desk, token = AnnotatorContext.of(scope.member), request.POST.get("token", "")

    def work(db: Connection[Any]) -> None:
        assignment.skip(db, desk, item_of(request.POST, scope.member), token, skip_reason(request.POST))

    return _decide(request, scope, work)


@action("judge")
@require_POST
def judge_query_flag(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Hand one pair to the adjudicators with a note."""
    desk, token = AnnotatorContext.of(scope.member), request.POST.get("token", "")

    def work(db: Connection[Any]) -> None:
        assignment.flag(db, desk, item_of(request.POST, scope.member), token, text(request.POST, "note"))

    return _decide(request, scope, work)


def _decide(request: HttpRequest, scope: Scope, work: Callable[[Connection[Any]], object]) -> HttpResponse:
    """The card after a decision; 422 for a bad form, 409 for a lost lease."""
    item = _item(request, scope)
    try:
        assignment.in_transaction(work)
    except (Invalid, assignment.TooSoon) as wrong:
        return _card(request, scope, item, problem=str(wrong), status=422)
    except assignment.Unknown:
        raise Http404(_("You were never lent this pair.")) from None
    except assignment.Lost as lost:
        return _card(request, scope, item, problem=str(lost), status=409)
    return _card(request, scope, item)


@action("judge")
@require_POST
def judge_query_undo(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Take the decision on a pair back: its card is open again."""
    item = _item(request, scope)
    try:
        undo.undo(scope.member, item)
    except assignment.Unknown:
        raise Http404(_("There is nothing of yours to take back.")) from None
    except assignment.Lost as refused:
        return _card(request, scope, item, problem=str(refused), status=409)
    return _card(request, scope, item)


def _item(request: HttpRequest, scope: Scope) -> int:
    try:
        return item_of(request.POST, scope.member)
    except Invalid as wrong:
        raise BadRequest(str(wrong)) from None


def _card(request: HttpRequest, scope: Scope, item: int, *, problem: str = "", status: int = 200) -> HttpResponse:
    """One pair for HTMX; without it the whole page once more."""
    if not request.headers.get("HX-Request"):
        return HttpResponseRedirect(reverse("judge_query", args=[scope.collection.name]), status=303)
    works = page.group(scope.member, item=item)
    work = works[0] if works else page.own_work(scope.member, item)
    if work and status == 422:
        work = replace(work, typed={name: request.POST.get(name, "") for name in page.TYPED})
    context = {**_common(scope), "work": work, "open": bool(works), "problem": problem}
    return render(request, "judging/_card.html", context, status=status)


def _common(scope: Scope) -> dict[str, object]:
    collection = scope.collection
    names = ("query_next", "query_submit", "query_skip", "query_flag", "query_undo", "draft", "history")
    addresses = {f"{which}_url": reverse(f"judge_{which}", args=[collection.name]) for which in names}
    buttons = {"grades": page.grades(collection), "skip_reasons": Assignment.SkipReason.choices}
    return {"scope": scope, "collection": collection, **buttons, **addresses}
