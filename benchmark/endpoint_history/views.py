"""The page of a search endpoint in a collection."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from actions.pages import form_of
from benchmark.endpoint_history import selectors
from benchmark.hole_filling import services
from corpus.access import AccessScope, action
from corpus.chart_downloads import answer_page


@action("results")
@require_GET
def endpoint_history(request: HttpRequest, scope: AccessScope, endpoint: str) -> HttpResponse:
    """Show an endpoint's runs over time, and the form that judges what is new. HTMX polls while something is made."""
    context, files = selectors.history_page(scope.collection, endpoint, request.GET.get("weights", ""))
    context["form"] = form_of(services.start_filling, only=("policy",), **selectors.judging_form())
    # Its choices say what an empty one means.
    context["form"].fields["policy"].help_text = ""
    news: dict[str, Any] = {"news": "benchmark/endpoint_history/_history.html"}
    return answer_page(request, scope, "benchmark/endpoint_history/history.html", context, **files, **news)
