"""Pages of statistics and exports."""

from itertools import chain
from typing import Any

from django.contrib import messages
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from annotation.data.statistics import statistics_of
from annotation.exports import listing
from annotation.exports.formats import EVERY, FORMATS, SETS
from annotation.exports.forms import SetForm
from annotation.exports.snapshots import create_snapshot, write_snapshot
from annotation.models import Snapshot
from annotation.permissions import Scope, action
from corpus.chart_downloads import download
from corpus.errors import BadInput
from jobs import background, workers


@action("admin")
@require_GET
def statistics(request: HttpRequest, scope: Scope) -> HttpResponse:
    """What the collection holds, and what became of its candidates round by round."""
    context = {"scope": scope, "section": "exports", "found": statistics_of(scope.collection)}
    return render(request, "exports/statistics.html", context)


@action("admin")
@require_GET
def exports(request: HttpRequest, scope: Scope) -> HttpResponse:
    """The snapshots that were made, and the form for a new one. HTMX asks for the list alone while one is made."""
    context = _snapshot_context(scope)
    if file := download(request, chain.from_iterable(one.balance_charts for one in context["snapshots"])):
        return file
    if request.headers.get("HX-Request"):
        # 286 tells HTMX to stop asking.
        return render(request, "exports/_snapshots.html", context, status=200 if context["making"] else 286)
    return _exports_page(request, scope, context, SetForm(collection=scope.collection))


def _snapshot_context(scope: Scope) -> dict[str, Any]:
    found = listing.list_exports(scope.collection)
    making = any(one.is_in_progress for one in found)
    return {"scope": scope, "section": "exports", "snapshots": found, "making": making}


def _exports_page(
    request: HttpRequest, scope: Scope, context: dict[str, Any], asked: SetForm, status: int = 200
) -> HttpResponse:
    context |= {
        "formats": FORMATS.values(),
        "sets": SETS.values(),
        "origins": listing.count_origins(scope.collection),
        "asked": asked,
        "chosen": request.POST.get("format") or next(iter(FORMATS)),
    }
    return render(request, "exports/exports.html", context, status=status)


@action("admin")
@require_POST
def make_export(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Make a snapshot: a small one at once, a large one by a worker."""
    if (name := request.POST.get("format", "")) not in EVERY:
        messages.error(request, _("Choose a format."))
        return redirect("exports", scope.collection.name)
    form = EVERY[name]
    asked = SetForm(request.POST, request.FILES, collection=scope.collection)
    if form.is_set and not asked.is_valid():
        return _exports_page(request, scope, _snapshot_context(scope), asked, status=422)
    chosen = request.POST.getlist("origin") if form.labels else []
    every = {origin for origin, _ in listing.count_origins(scope.collection)}
    snapshot = create_snapshot(
        collection=scope.collection,
        form=form,
        origins=chosen if chosen and set(chosen) != every else None,
        asked=asked.options if form.is_set else None,
        user=scope.user,
    )
    # Where no worker lives, the page waits for a large one all the same.
    if listing.is_large(form, scope.collection) and workers.has_workers():
        background.enqueue(listing.MAKE, snapshot.pk)
        messages.info(request, _("A worker creates the export. This page shows its progress."))
        return redirect("exports", scope.collection.name)
    try:
        write_snapshot(snapshot)
        rows = snapshot.manifest["counts"]["rows"]
        messages.success(request, _("%(manifest)s rows are ready.") % {"manifest": f"{rows:,}"})
    except BadInput as error:
        # Options that are refused leave no row behind; a failure of ours stands in the list.
        snapshot.delete()
        asked.add_error(None, str(error))
        return _exports_page(request, scope, _snapshot_context(scope), asked, status=422)
    except OSError:
        messages.error(request, _("The export failed and left nothing behind. The list below says why."))
    return redirect("exports", scope.collection.name)


@action("admin")
@require_GET
def export_file(request: HttpRequest, scope: Scope, snapshot: int, file: str) -> HttpResponseBase:
    """Download a file of a snapshot."""
    row = get_object_or_404(Snapshot.objects.select_related("collection"), pk=snapshot, collection=scope.collection)
    path = listing.file_of(row, file)
    if path is None:
        raise Http404(_("No such file."))
    name = f"{scope.collection.name}-{row.pk}-{file.replace('/', '-')}"
    return FileResponse(path.open("rb"), as_attachment=True, filename=name)
