"""Adjudication: the conflict, what annotators said without names, and the next conflict."""

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _

from annotation.adjudication import conflicts
from annotation.judging import forms, page
from annotation.judging.views import render_pair_page
from annotation.permissions import Scope, action
from annotation.queue.assignment import DecidedAlready, DecisionRefused, TooSoon, Unknown


@action("adjudicate", "GET", "HEAD")
def adjudicate(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the next conflict; `?after=ITEM` passes over one for now."""
    after = request.GET.get("after", "")
    return _render_conflict(
        request, scope, after=int(after) if after.isascii() and after.isdigit() and len(after) < 18 else None
    )


@action("adjudicate", "POST")
def adjudicate_submit(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Store an adjudicator's decision; the answer shows the next conflict."""
    item = None
    try:
        item = forms.parse_whole_number(request.POST, "item")
        conflicts.adjudicate(
            scope.member,
            item,
            forms.parse_grade(request.POST, scope.collection),
            comment=forms.parse_text(request.POST, "comment"),
            milliseconds=forms.parse_milliseconds(request.POST),
            idle=forms.parse_milliseconds(request.POST, "idle"),
            shown_ms=forms.parse_shown(request.POST, forms.CONFLICT, scope.member, item),
        )
    except Unknown:
        raise Http404(_("Pair not found.")) from None
    except DecisionRefused as lost:
        decided = item if isinstance(lost, DecidedAlready) else None
        return _render_conflict(request, scope, status=409, problem=str(lost), decided=decided)
    except (forms.Invalid, TooSoon) as wrong:
        # The same conflict again, which need not be the first: what was typed is about this pair.
        return _render_conflict(request, scope, status=422, problem=str(wrong), show=item)
    return _show_conflict(request, scope, settled=item)


@action("adjudicate", "POST")
def adjudicate_undo(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Take back one's own decision and show its pair, which is a conflict again."""
    try:
        item = forms.parse_whole_number(request.POST, "item")
        conflicts.undo_adjudication(scope.member, item)
    except Unknown:
        raise Http404(_("You have no decision to undo.")) from None
    except (DecisionRefused, forms.Invalid) as refused:
        return _render_conflict(request, scope, status=409, problem=str(refused))
    # The page of a refused decision sends its comment with the undo: it waits on the conflict that is open again.
    return _show_conflict(request, scope, show=item, typed=forms.parse_text(request.POST, "comment"))


def _show_conflict(request: HttpRequest, scope: Scope, **chosen: Any) -> HttpResponse:
    # A comment that waits on the pair would be lost on the way.
    if request.headers.get("HX-Request") or chosen.get("typed"):
        return _render_conflict(request, scope, **chosen)
    return HttpResponseRedirect(reverse("adjudicate", args=[scope.collection.name]), status=303)


def _render_conflict(
    request: HttpRequest,
    scope: Scope,
    *,
    status: int = 200,
    problem: str = "",
    after: int | None = None,
    show: int | None = None,
    settled: int | None = None,
    decided: int | None = None,
    typed: str = "",
) -> HttpResponse:
    item, waiting = conflicts.choose_conflict(conflicts.find_conflicts(scope.member), after=after, show=show)
    context: dict[str, object] = {
        "section": "adjudicate",
        "waiting": waiting,
        "last": decided or settled or conflicts.last_decision(scope.member),
        "decided": decided,
        "settled": settled,
        "problem": problem,
        "typed": forms.parse_text(request.POST, "comment") if status == 422 else typed,
        "kept": forms.parse_text(request.POST, "comment") if status == 409 else "",
    }
    if item:
        said = conflicts.list_opinions(item)
        context |= {"opinions": said, "why_conflict": conflicts.why_conflict(said)}
        context["work"] = page.conflict_work(scope.collection, item.pk)
        context["shown"] = forms.stamp_shown(forms.CONFLICT, scope.member, item.pk)
    fragment = "judging/_conflict.html" if item else "judging/_no_conflict.html"
    return render_pair_page(request, scope, fragment, context, status=status)
