"""The benchmark's home."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from benchmark.hole_filling import worker_presence
from benchmark.systems import figures
from benchmark.systems.overview import benchmark_overview
from corpus.access import AccessScope, action
from corpus.chart_downloads import download


@action("admin")
@require_GET
def benchmark(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """What there is, how safe its order is, what filling did, what to do next. HTMX asks for news while work runs."""
    found = benchmark_overview(scope.collection)
    safety = figures.bounds_chart(found.safety) if found.safety and found.safety.is_ready else None
    ranks = figures.bump_chart(found.report, figures.MEASURE) if found.report and found.report.is_ready else None
    if (file := download(request, [safety, ranks])) is not None:
        return file
    context = {
        "scope": scope,
        "section": "benchmark",
        "overview": found,
        "safety": safety,
        "ranks": ranks,
        "unattended": worker_presence.is_unattended(*found.followed),
    }
    if request.headers.get("HX-Request"):
        return render(request, "benchmark/_story.html", context, status=200 if found.is_moving else 286)
    return render(request, "benchmark/home.html", context)
