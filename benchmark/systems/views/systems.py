"""One system's page."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from benchmark.forms import LimitsForm
from benchmark.hole_filling import worker_presence
from benchmark.models import Run
from benchmark.report import tables
from benchmark.report.views.downloads import download
from benchmark.systems import page
from corpus.access import AccessScope, action


@action("admin")
@require_GET
def system(request: HttpRequest, scope: AccessScope, run: int) -> HttpResponse:
    """A run: how far it is while it is made, then its values, changes, holes and cost."""
    found = get_object_or_404(Run, pk=run, collection=scope.collection)
    shown = page.system_page(scope.collection, found, whole=request.GET.get("table", ""))
    if (file := download(request, [], tables.system_tables(shown))) is not None:
        return file
    context = {
        "scope": scope,
        "section": "benchmark",
        "run": found,
        "limits": LimitsForm(initial=found.recipe),
        "system": shown,
        "unattended": worker_presence.is_unattended(found),
    }
    if request.headers.get("HX-Request"):
        return render(request, "benchmark/_run.html", context, status=286 if found.is_over else 200)
    return render(request, "benchmark/system.html", context)
