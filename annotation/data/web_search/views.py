"""Pages of web searches: the list with the form of a new one, and one search with its results."""

from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET, require_http_methods

from actions.pages import form_of
from annotation.access.permissions import Scope, action
from annotation.data.web_search import page
from annotation.data.web_search.searching import WEB_SEARCHES
from annotation.models.web_search import WebSearch
from judges.model_jobs.pages import job_page, start_page
from judges.panels.offline_panel import OFFLINE_SEARCH


@action("admin")
@require_http_methods(["GET", "POST"])
def web_searches(request: HttpRequest, scope: Scope) -> HttpResponse:
    """List the web searches, with the form of a new one; POST shows its estimate, then starts it."""
    form = form_of(WEB_SEARCHES.start, request, **WEB_SEARCHES.shown_in(scope.collection))
    searches = list(
        WebSearch.objects.filter(collection=scope.collection)
        # Distinct, since pages with the same text are one document.
        .annotate(results=Count("queries__results"), documents=Count("queries__results__document", distinct=True))
        .order_by("-pk")
    )
    names = "web_search/searches.html", "web_search/_searches.html"
    context = {"offline": OFFLINE_SEARCH}
    return start_page(
        request, scope, WEB_SEARCHES, form, *names, searches, context, tables=[page.searches_table(searches)]
    )


@action("admin")
@require_GET
def web_search(request: HttpRequest, scope: Scope, search: int) -> HttpResponse:
    """Show a web search: progress, results, those left out with reasons, and its cost."""
    row = WEB_SEARCHES.find(scope.collection, search)
    context = {"search": row, "shown": page.show_search(row, request.GET.get("page"))}
    tables = [page.results_table(row), page.reasons_table(row)] if "table" in request.GET else []
    return job_page(request, scope, row, "web_search/search.html", "web_search/_search.html", context, tables=tables)
