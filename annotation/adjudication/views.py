"""Adjudication: the conflict, what annotators said without their names, and the next one in the same answer."""

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from annotation import guidelines
from annotation.adjudication import conflicts
from annotation.judging import page, shown
from annotation.judging.forms import Invalid, grade, milliseconds, text, whole
from annotation.permissions import Scope, action
from annotation.queue.assignment import Lost, TooSoon, Unknown
from corpus.models import Item


@action("adjudicate")
@require_safe
def adjudicate(request: HttpRequest, scope: Scope) -> HttpResponse:
    """The next conflict; `?after=ITEM` leaves one for later."""
    after = request.GET.get("after", "")
    return _page(request, scope, after=int(after) if after.isascii() and after.isdigit() and len(after) < 18 else None)


@action("adjudicate")
@require_POST
def adjudicate_submit(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Settle a conflict; the next one comes with the answer."""
    try:
        item = whole(request.POST, "item")
        conflicts.adjudicate(
            scope.member,
            item,
            grade(request.POST, scope.collection),
            comment=text(request.POST, "comment"),
            milliseconds=milliseconds(request.POST),
            idle=milliseconds(request.POST, "idle"),
            shown_ms=shown.shown_ms(request.POST.get("shown", ""), shown.CONFLICT, scope.member, item),
        )
    except Unknown:
        raise Http404(_("There is no such pair here.")) from None
    except Lost as lost:
        return _page(request, scope, status=409, problem=str(lost))
    except (Invalid, TooSoon) as wrong:
        return _page(request, scope, status=422, problem=str(wrong))
    return _done(request, scope, settled=item)


@action("adjudicate")
@require_POST
def adjudicate_undo(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Take one's own decision back; the pair is a conflict again and is shown."""
    try:
        item = whole(request.POST, "item")
        conflicts.undo_adjudication(scope.member, item)
    except Unknown:
        raise Http404(_("There is nothing of yours to take back.")) from None
    except (Lost, Invalid) as refused:
        return _page(request, scope, status=409, problem=str(refused))
    return _page(request, scope, show=item) if request.headers.get("HX-Request") else _done(request, scope)


def _done(request: HttpRequest, scope: Scope, *, settled: int | None = None) -> HttpResponse:
    if request.headers.get("HX-Request"):
        return _page(request, scope, settled=settled)
    return HttpResponseRedirect(reverse("adjudicate", args=[scope.collection.name]), status=303)


def _page(
    request: HttpRequest,
    scope: Scope,
    *,
    status: int = 200,
    problem: str = "",
    after: int | None = None,
    show: int | None = None,
    settled: int | None = None,
) -> HttpResponse:
    item, waiting = conflicts.choose(conflicts.conflicts(scope.member), after=after, show=show)
    context: dict[str, object] = {
        "scope": scope,
        "collection": scope.collection,
        "section": "adjudicate",
        "waiting": waiting,
        "last": settled or conflicts.last_decision(scope.member),
        "settled": settled,
        "problem": problem,
        "typed": text(request.POST, "comment") if status == 422 else "",
        "kept": text(request.POST, "comment") if status == 409 else "",
        "grades": page.grades(scope.collection),
        **(_conflict(scope, item) if item else {}),
    }
    fragment = "judging/_conflict.html" if item else "judging/_no_conflict.html"
    if request.headers.get("HX-Request"):
        return render(request, fragment, context, status=status)
    context |= {"fragment": fragment, "guidelines": guidelines.current(scope.collection)}
    return render(request, "judging/page.html", context, status=status)


def _conflict(scope: Scope, item: Item) -> dict[str, object]:
    work, said = page.conflict_work(scope.collection, item.pk), conflicts.opinions(item)
    stamp = shown.stamp(shown.CONFLICT, scope.member, item.pk)
    return {"work": work, "opinions": said, "why_conflict": conflicts.why_conflict(said), "shown": stamp}
