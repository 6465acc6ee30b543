"""Pages of systems: a system, the list of queries, a query side by side, a document's text."""

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from benchmark.models import Run
from benchmark.report import tables
from benchmark.report.systems import chosen
from benchmark.report.systems import queries as pages
from benchmark.report.systems.page import system_page
from benchmark.report.weighting import MeansChoice
from benchmark.runs.answer_counts import describe_answers
from corpus.access import AccessScope, action
from corpus.chart_downloads import answer_page
from corpus.models import Document, Query
from judges.model_jobs.pages import job_page

DEEPEST = 100


@action("results")
@require_GET
def system(request: HttpRequest, scope: AccessScope, run: int) -> HttpResponse:
    """Show a run: its progress until it is ready, then values, changes, holes and cost."""
    run_row = get_object_or_404(Run, pk=run, collection=scope.collection)
    means = MeansChoice.of([scope.collection], request.GET.get("weights", ""))
    page = system_page(scope.collection, run_row, whole=request.GET.get("table", ""), weights=means.weights)
    # Only runs that ask models have limits.
    context = {"run": run_row, "system": page, "answers": describe_answers(run_row), "means": means}
    context |= {} if run_row.campaign else {"limits": None}
    names = "benchmark/system.html", "benchmark/_run.html"
    return job_page(request, scope, run_row, *names, context, tables=tables.system_tables(page))


def _number_within(text: str | None, minimum: int, maximum: int, default: int) -> int:
    """Read a number from a query parameter, clamped to its bounds."""
    return min(max(int(text), minimum), maximum) if text and text.isascii() and text.isdigit() else default


@action("results")
@require_GET
def benchmark_queries(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """List queries with counts of their judgments, by default those with most holes first."""
    listing = pages.list_queries(
        scope.collection,
        words=request.GET.get("words", "").strip()[:200],
        order=request.GET.get("order", "holes"),
        page=_number_within(request.GET.get("page"), 1, 100_000, 1),
        whole="table" in request.GET,
    )
    context = {"listed": listing, "asked": urlencode({"words": listing["words"], "order": listing["order"]})}
    files = [tables.queries_table(listing["rows"])]
    return answer_page(request, scope, "benchmark/queries.html", context, tables=files)


@action("results")
@require_GET
def benchmark_query(request: HttpRequest, scope: AccessScope, query: int) -> HttpResponse:
    """Show what each system returned for a query, side by side."""
    query_row = get_object_or_404(Query, pk=query, collection=scope.collection)
    depth = _number_within(request.GET.get("k"), 1, DEEPEST, chosen.K)
    comparison = pages.side_by_side(scope.collection, query_row, names=request.GET.getlist("run"), k=depth)
    table = tables.side_by_side_table(query_row, comparison, with_grades=scope.collection.grades > 1)
    query_string = urlencode([("k", depth), *(("run", column["run"].name) for column in comparison["columns"])])
    context = {"query": query_row, "side": comparison, "depths": (10, 20, 50, 100), "asked": query_string}
    return answer_page(request, scope, "benchmark/query.html", context, tables=[table])


@action("results")
@require_GET
def benchmark_text(request: HttpRequest, scope: AccessScope, query: int, document: int) -> HttpResponse:
    """Show a document's text beside the query; HTMX asks for the text only."""
    query_row = get_object_or_404(Query, pk=query, collection=scope.collection)
    document_row = get_object_or_404(Document, pk=document, collection=scope.collection)
    context = {"scope": scope, "query": query_row, "document": document_row}
    page = "benchmark/_text.html" if request.headers.get("HX-Request") else "benchmark/text.html"
    return render(request, page, context)
