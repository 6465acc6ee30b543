"""Pages of systems: one, its queries, a query side by side, a document's text."""

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from benchmark.models import Run
from benchmark.report import tables
from benchmark.systems import chosen
from benchmark.systems import queries as pages
from benchmark.systems.page import system_page
from corpus.access import AccessScope, action
from corpus.chart_downloads import answer_page
from corpus.models import Document, Query
from judges.model_jobs.pages import job_page

DEEPEST = 100


@action("admin")
@require_GET
def system(request: HttpRequest, scope: AccessScope, run: int) -> HttpResponse:
    """Show a run: its progress while it is made, then values, changes, holes and cost."""
    found = get_object_or_404(Run, pk=run, collection=scope.collection)
    shown = system_page(scope.collection, found, whole=request.GET.get("table", ""))
    # Only what asks models has limits.
    context = {"run": found, "system": shown, **({} if found.campaign else {"limits": None})}
    names = "benchmark/system.html", "benchmark/_run.html"
    return job_page(request, scope, found, *names, context, tables=tables.system_tables(shown))


def _number_within(given: str | None, least: int, most: int, otherwise: int) -> int:
    """Read a number from the address, kept within its bounds."""
    return min(max(int(given), least), most) if given and given.isascii() and given.isdigit() else otherwise


@action("admin")
@require_GET
def benchmark_queries(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """Queries with how much of each is judged; those with most holes first."""
    found = pages.list_queries(
        scope.collection,
        words=request.GET.get("words", "").strip()[:200],
        order=request.GET.get("order", "holes"),
        page=_number_within(request.GET.get("page"), 1, 100_000, 1),
        whole="table" in request.GET,
    )
    context = {"listed": found, "asked": urlencode({"words": found["words"], "order": found["order"]})}
    files = [tables.queries_table(found["rows"])]
    return answer_page(request, scope, "benchmark/queries.html", context, tables=files)


@action("admin")
@require_GET
def benchmark_query(request: HttpRequest, scope: AccessScope, query: int) -> HttpResponse:
    """Show what each system returned for a query, side by side."""
    found = get_object_or_404(Query, pk=query, collection=scope.collection)
    depth = _number_within(request.GET.get("k"), 1, DEEPEST, chosen.K)
    side = pages.side_by_side(scope.collection, found, names=request.GET.getlist("run"), k=depth)
    table = tables.side_by_side_table(found, side, with_grades=scope.collection.grades > 1)
    asked = urlencode([("k", depth), *(("run", column["run"].name) for column in side["columns"])])
    context = {"query": found, "side": side, "depths": (10, 20, 50, 100), "asked": asked}
    return answer_page(request, scope, "benchmark/query.html", context, tables=[table])


@action("admin")
@require_GET
def benchmark_text(request: HttpRequest, scope: AccessScope, query: int, document: int) -> HttpResponse:
    """Show a document's text beside the query; HTMX asks for the text alone."""
    asked = get_object_or_404(Query, pk=query, collection=scope.collection)
    found = get_object_or_404(Document, pk=document, collection=scope.collection)
    context = {"scope": scope, "query": asked, "document": found}
    page = "benchmark/_text.html" if request.headers.get("HX-Request") else "benchmark/text.html"
    return render(request, page, context)
