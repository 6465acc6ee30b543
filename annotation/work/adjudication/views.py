"""Pages of adjudication: a conflict with the annotators' opinions, the decision, and the next conflict."""

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from annotation.access.permissions import Scope, action
from annotation.work.adjudication import conflicts
from annotation.work.judging import forms, page
from annotation.work.judging.views import render_pair_page
from annotation.work.queue.assignment import DecidedAlready, DecisionRefused
from corpus.errors import BadInput


@action("adjudicate", "GET", "HEAD")
def adjudicate(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the next conflict; `?after=ITEM` skips one for now, `?show=ITEM` names one."""
    after, show = (
        int(text) if text.isascii() and text.isdigit() and len(text) < 18 else None
        for text in (request.GET.get(name, "") for name in ("after", "show"))
    )
    return _render_conflict(request, scope, after=after, show=show)


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
    except DecisionRefused as error:
        decided = item if isinstance(error, DecidedAlready) else None
        return _render_conflict(request, scope, status=409, problem=str(error), decided=decided)
    except BadInput as error:
        # The same conflict again, which may not be the first one that waits.
        return _render_conflict(request, scope, status=422, problem=str(error), show=item)
    return _show_conflict(request, scope, resolved=item)


@action("adjudicate", "POST")
def adjudicate_undo(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Undo the adjudicator's own decision and show its pair, which is a conflict again."""
    try:
        item = forms.parse_whole_number(request.POST, "item")
        conflicts.undo_adjudication(scope.member, item)
    except (DecisionRefused, BadInput) as error:
        return _render_conflict(request, scope, status=409, problem=str(error))
    # The page of a refused decision sends its comment with the undo, to be shown on the reopened conflict.
    return _show_conflict(request, scope, show=item, typed=forms.parse_text(request.POST, "comment"))


def _show_conflict(request: HttpRequest, scope: Scope, **choice: Any) -> HttpResponse:
    # A redirect would lose the comment.
    if request.headers.get("HX-Request") or choice.get("typed"):
        return _render_conflict(request, scope, **choice)
    return HttpResponseRedirect(reverse("adjudicate", args=[scope.collection.name]), status=303)


def _render_conflict(
    request: HttpRequest,
    scope: Scope,
    *,
    status: int = 200,
    problem: str = "",
    after: int | None = None,
    show: int | None = None,
    resolved: int | None = None,
    decided: int | None = None,
    typed: str = "",
) -> HttpResponse:
    item, count = conflicts.choose_conflict(conflicts.find_conflicts(scope.member), after=after, show=show)
    context: dict[str, object] = {
        "section": "adjudicate",
        "waiting": count,
        "last": decided or resolved or conflicts.last_decision(scope.member),
        "decided": decided,
        "settled": resolved,
        "problem": problem,
        "typed": forms.parse_text(request.POST, "comment") if status == 422 else typed,
        "kept": forms.parse_text(request.POST, "comment") if status == 409 else "",
    }
    if item:
        opinions = conflicts.list_opinions(item)
        context |= {"opinions": opinions, "why_conflict": conflicts.why_conflict(opinions)}
        context["work"] = page.conflict_task(scope.collection, item.pk)
        context["shown"] = forms.stamp_shown(forms.CONFLICT, scope.member, item.pk)
    fragment = "judging/_conflict.html" if item else "judging/_no_conflict.html"
    return render_pair_page(request, scope, fragment, context, status=status)
