"""Pages of comparisons: an admin's sets and their results, and the page on which people compare."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from actions.options import ActionForm
from actions.pages import answer_action, form_of
from actions.services import Actor
from annotation.access.permissions import Scope, action
from annotation.models.comparisons import ComparisonSet
from annotation.work.comparing import page, selectors, services
from annotation.work.comparing.options import ComparisonAnswerOptions
from annotation.work.judging.document import allow_images
from annotation.work.quality_control import onboarding
from annotation.work.settings import guidelines
from corpus.chart_downloads import answer_page
from corpus.errors import BadInput, StateConflict


@action("admin", "GET", "POST")
def comparisons(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the sets and the form of a new one; POST shows its estimate, and draws it once confirmed."""
    form = form_of(services.draw_comparisons, request)

    def show(form: ActionForm) -> HttpResponse:
        context = {"scope": scope, "form": form, "sets": selectors.sets_of(scope.collection).order_by("-number")}
        return render(request, "comparing/comparisons.html", context, status=422 if form.is_bound else 200)

    def address(comparison_set: ComparisonSet) -> str:
        return reverse("comparison_set", args=[scope.collection.name, comparison_set.number])

    confirmation: dict[str, Any] = {"confirm": "comparing/confirm.html", "estimate": selectors.estimate_set}
    return answer_action(request, scope, services.draw_comparisons, form, show, address, **confirmation)


@action("admin", "GET")
def comparison_set(request: HttpRequest, scope: Scope, number: int) -> HttpResponse:
    """Show the results of a set: its progress, agreement, sides, and each query's documents by strength."""
    row = selectors.find_set(scope.collection, number)
    context, charts = page.build_results(row, request.GET.get("by", ""), request.GET.get("page", "1"))
    return answer_page(request, scope, "comparing/set.html", context, charts=charts)


@action("admin", "POST")
def control_set(request: HttpRequest, scope: Scope, number: int, act: str) -> HttpResponse:
    """Pause, resume, end or delete a set."""
    if act not in services.SET_ACTIONS:
        raise Http404(_("Unknown action."))
    try:
        services.SET_ACTIONS[act](Actor.of(scope), selectors.find_set(scope.collection, number))
    except BadInput as error:
        messages.error(request, str(error))
    else:
        if act == "delete":
            return redirect("comparisons", scope.collection.name)
    return redirect("comparison_set", scope.collection.name, number)


# People at work


@action("judge", "GET", "HEAD")
def compare(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the member's open comparison, with the next one ready behind it; reading never claims."""
    return _render_comparisons(request, scope)


@action("judge", "POST")
def compare_next(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Renew the member's open comparisons, or assign the next ones."""
    services.claim(scope.member)
    return HttpResponseRedirect(reverse("compare", args=[scope.collection.name]), status=303)


@action("judge", "POST")
def compare_answer(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Store the answer to a comparison; the script of the page gets the open ones, a plain form the page."""
    fields = {name: request.POST[name] for name in ComparisonAnswerOptions.names() if request.POST.get(name)}
    try:
        services.answer(scope.member, ComparisonAnswerOptions.read(fields))
    except StateConflict as error:
        return _render_comparisons(request, scope, problem=str(error), status=409)
    except BadInput as error:
        return _render_comparisons(request, scope, problem=str(error), status=422)
    return _respond(request, scope)


@action("judge", "POST")
def compare_undo(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Withdraw the member's last answer and show its comparison again."""
    try:
        services.undo(scope.member)
    except StateConflict as error:
        return _render_comparisons(request, scope, problem=str(error), status=409)
    return _respond(request, scope)


def _respond(request: HttpRequest, scope: Scope) -> HttpResponse:
    if request.headers.get("HX-Request"):
        return _render_comparisons(request, scope)
    return HttpResponseRedirect(reverse("compare", args=[scope.collection.name]), status=303)


def _render_comparisons(request: HttpRequest, scope: Scope, *, problem: str = "", status: int = 200) -> HttpResponse:
    """Render the open comparisons: for the script alone, else on the page."""
    member, views = scope.member, selectors.open_comparisons(scope.member)
    # Consent, the test, a pause and the limits of work have their pages at the judging page.
    if not views and onboarding.find_stop(member):
        return redirect("judge", scope.collection.name)
    context: dict[str, Any] = {
        "scope": scope,
        "collection": scope.collection,
        "views": views,
        "progress": selectors.own_progress(member),
        "problem": problem,
    }
    if request.headers.get("HX-Request"):
        return render(request, "comparing/_cards.html", context, status=status)
    context |= {"guidelines": guidelines.current(scope.collection), "may_undo": selectors.may_undo(member)}
    response = render(request, "comparing/compare.html", context, status=status)
    return allow_images(response, scope.collection.document_format)
