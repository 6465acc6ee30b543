"""Queries of the benchmark: the list, one query with its systems side by side, and a document's text."""

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from benchmark.report import tables
from benchmark.report.views.downloads import download
from benchmark.systems import queries as pages
from benchmark.systems.chosen import K
from corpus.access import AccessScope, action
from corpus.models import Document, Query

DEEPEST = 100


def _number_within(given: str | None, least: int, most: int, otherwise: int) -> int:
    """A number of the address, within its bounds."""
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
    if (file := download(request, [], [tables.queries_table(found.rows)])) is not None:
        return file
    asked = urlencode({"words": found.words, "order": found.order})
    context = {"scope": scope, "section": "benchmark", "listed": found, "asked": asked}
    return render(request, "benchmark/queries.html", context)


@action("admin")
@require_GET
def benchmark_query(request: HttpRequest, scope: AccessScope, query: int) -> HttpResponse:
    """What each system returned for it, side by side."""
    found = get_object_or_404(Query, pk=query, collection=scope.collection)
    depth = _number_within(request.GET.get("k"), 1, DEEPEST, K)
    side = pages.side_by_side(scope.collection, found, names=request.GET.getlist("run"), k=depth)
    if (
        file := download(request, [], [tables.side_by_side_table(side, with_grades=scope.collection.grades > 1)])
    ) is not None:
        return file
    context = {"scope": scope, "section": "benchmark", "query": found, "side": side, "depths": (10, 20, 50, 100)}
    context["asked"] = urlencode([("k", depth), *(("run", column.run.name) for column in side.columns)])
    return render(request, "benchmark/query.html", context)


@action("admin")
@require_GET
def benchmark_text(request: HttpRequest, scope: AccessScope, query: int, document: int) -> HttpResponse:
    """A document's text beside the query; HTMX asks for the text alone."""
    asked = get_object_or_404(Query, pk=query, collection=scope.collection)
    found = get_object_or_404(Document, pk=document, collection=scope.collection)
    context = {"scope": scope, "section": "benchmark", "query": asked, "document": found}
    page = "benchmark/_text.html" if request.headers.get("HX-Request") else "benchmark/text.html"
    return render(request, page, context)
