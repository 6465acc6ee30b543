""" "My judgments": a member's decisions, newest first, and each pair as they saw it."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from annotation.judging import history, page
from annotation.models import Assignment
from annotation.permissions import Scope, action
from annotation.queue.annotators import closed


@action("judge")
@require_safe
def judge_history(request: HttpRequest, scope: Scope) -> HttpResponse:
    """The member's own decisions, fifty a page; `?before=` is the last one of the page before."""
    decisions, more = history.list_decisions(scope.member, before=request.GET.get("before", ""))
    context = {
        "scope": scope,
        "section": "judge",
        "decisions": decisions,
        "more": more,
        "closed": closed(scope.member),
    }
    return render(request, "judging/history.html", context)


@action("judge")
@require_safe
def judge_history_item(request: HttpRequest, scope: Scope, item: int) -> HttpResponse:
    """Show a pair that the member decided on, with their grade; the keys `n` and `p` lead to its neighbours."""
    item = Assignment.item_of(scope.member, item)
    decision = history.decided_assignments(scope.member).filter(item=item).first()
    work = page.own_work(scope.member, item)
    if decision is None or work is None:
        raise Http404(_("You have no decision on this pair."))
    newer, older = history.neighbour_items(decision)
    context = {
        "scope": scope,
        "section": "judge",
        "collection": scope.collection,
        "work": work,
        "decision": decision,
        "closed": closed(scope.member),
        "newer": newer,
        "older": older,
    }
    return render(request, "judging/history_item.html", context)
