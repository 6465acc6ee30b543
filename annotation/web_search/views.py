"""Pages of web searches: the list and the start, one with its results, and acts on it."""

from typing import Any

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotation.audit_log.recording import record
from annotation.models.web_search import WebSearch
from annotation.permissions import Scope, action
from annotation.web_search import page, searching
from annotation.web_search.forms import WebSearchForm
from corpus import chart_downloads
from corpus.errors import BadInput
from corpus.numbered import numbered_or_404
from judges.campaigns.job_controls import LimitsForm, control_job
from judges.panels.offline_panel import OFFLINE_SEARCH

STOP_POLLING = 286  # HTMX stops asking when it gets this status.


@action("admin")
@require_http_methods(["GET", "POST"])
def web_searches(request: HttpRequest, scope: Scope) -> HttpResponse:
    """All web searches and the form of a new one; what it will cost; then one that waits for a worker."""
    given = request.POST if request.method == "POST" else None
    form = WebSearchForm(given)
    if given is not None and form.is_valid():
        try:
            if "confirm" in given:
                return _start_search(scope, form)
            estimate = searching.estimate_cost(scope.collection, form.cleaned_data)
            return render(request, "web_search/confirm.html", {"scope": scope, "form": form, "estimate": estimate})
        except BadInput as error:
            form.add_error(None, str(error))
    found = list(page.list_searches(scope.collection))
    if "table" in request.GET:
        return chart_downloads.send_table(request, [page.searches_table(found)])
    moving = any(not one.is_over for one in found)
    context: dict[str, Any] = {"scope": scope, "form": form, "searches": found, "moving": moving}
    context |= {"unattended": page.is_unattended(*found), "offline": OFFLINE_SEARCH}
    if request.headers.get("HX-Request") and given is None:
        return render(request, "web_search/_searches.html", context, status=200 if moving else STOP_POLLING)
    return render(request, "web_search/searches.html", context, status=422 if form.is_bound else 200)


@transaction.atomic
def _start_search(scope: Scope, form: WebSearchForm) -> HttpResponse:
    made = searching.start_or_join(collection=scope.collection, options=form.cleaned_data, by=scope.user.username)
    record(scope, "import.web", number=made.number)
    return redirect("web_search", scope.collection.name, made.number)


def _find_search(scope: Scope, search: int) -> WebSearch:
    rows = WebSearch.objects.select_related("collection")
    return numbered_or_404(rows, scope.collection, search, _("Web search not found."))


@action("admin")
@require_GET
def web_search(request: HttpRequest, scope: Scope, search: int) -> HttpResponse:
    """Show a web search: progress, results, what was left out and why, and its cost."""
    one = _find_search(scope, search)
    if "table" in request.GET:
        return chart_downloads.send_table(request, [page.results_table(one), page.reasons_table(one)])
    context: dict[str, Any] = {"scope": scope, "search": one, "found": page.show_search(one, request.GET.get("page"))}
    context |= {"limits": LimitsForm(initial=one.options), "unattended": page.is_unattended(one)}
    if request.headers.get("HX-Request"):
        return render(request, "web_search/_search.html", context, status=STOP_POLLING if one.is_over else 200)
    return render(request, "web_search/search.html", context)


@action("admin")
@require_POST
def control_web_search(request: HttpRequest, scope: Scope, search: int, act: str) -> HttpResponse:
    """cancel, go on."""
    one = _find_search(scope, search)
    acts = {"cancel": searching.cancel_search, "go-on": searching.go_on}
    limits = searching.set_limits
    control_job(request, scope, one, act, acts=acts, set_limits=limits, audit="import.web-control", number=one.number)
    return redirect("web_search", scope.collection.name, one.number)
