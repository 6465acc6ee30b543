"""Pages of statistics and exports."""

from itertools import chain
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST, require_safe

from actions.options import show_refusal
from annotation.data.statistics import statistics_of
from annotation.exports import listing
from annotation.exports.formats import EVERY, FORMATS, SETS, Format
from annotation.exports.forms import SetForm
from annotation.exports.preview import preview_export
from annotation.exports.snapshots import create_snapshot, write_snapshot
from annotation.label_quality.loading import load_label_quality
from annotation.label_sources.choices import AGGREGATES
from annotation.label_sources.failed_routes import list_failed_routes
from annotation.models.snapshots import Snapshot
from annotation.permissions import Scope, action
from corpus.chart_downloads import download
from corpus.errors import BadInput
from corpus.numbered import numbered_or_404
from jobs import background, workers
from store.downloads import send_file


@action("admin")
@require_GET
def statistics(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the numbers of the collection, and what became of its candidates round by round."""
    context = {"scope": scope, "found": statistics_of(scope.collection)}
    return render(request, "exports/statistics.html", context)


@action("admin")
@require_GET
def exports(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the exports and the form for a new one. HTMX asks for the list alone while one is made."""
    context = _snapshot_context(scope)
    if file := download(request, chain.from_iterable(one.balance_charts for one in context["snapshots"])):
        return file
    if request.headers.get("HX-Request"):
        # 286 tells HTMX to stop asking.
        return render(request, "exports/_snapshots.html", context, status=200 if context["making"] else 286)
    asked = SetForm(collection=scope.collection)
    if "qrels" in asked.fields:
        asked.fields["qrels"].initial = request.GET.get("qrels")
    return _exports_page(request, scope, context, asked)


def _snapshot_context(scope: Scope) -> dict[str, Any]:
    found = listing.list_exports(scope.collection)
    making = any(one.is_in_progress for one in found)
    return {"scope": scope, "snapshots": found, "making": making}


def _exports_page(
    request: HttpRequest, scope: Scope, context: dict[str, Any], asked: SetForm, status: int = 200
) -> HttpResponse:
    collection = scope.collection
    failed = [route for route in list_failed_routes(collection) if route.pairs]
    origins, named = listing.count_origins(collection), request.POST.getlist("origin")
    chosen = request.POST.get("format") or request.GET.get("format", "")
    context |= {
        "formats": FORMATS.values(),
        "sets": SETS.values(),
        "origins": [(origin, n, not request.POST or origin in named) for origin, n in origins],
        "asked": asked,
        "chosen": chosen if chosen in EVERY else next(iter(FORMATS)),
        "quality": load_label_quality(collection),
        "failed_routes": failed,
        "failed_pairs": sum(route.pairs for route in failed),
        "leaves_out": "leave_out_failed" in request.POST,
        "aggregates": AGGREGATES.items(),
        "aggregate": request.POST.get("aggregate", ""),
        "assessors": request.POST.get("assessors", ""),
    }
    return render(request, "exports/exports.html", context, status=status)


def _read_choices(request: HttpRequest, scope: Scope, form: Format, asked: SetForm) -> dict[str, Any]:
    """Return the choices of the form as `build_snapshot` takes them."""
    chosen = request.POST.getlist("origin") if form.labels else []
    every = {origin for origin, _ in listing.count_origins(scope.collection)}
    aggregate = request.POST.get("aggregate") or None if form.labels else None
    whose = request.POST.get("assessors")
    return {
        "collection": scope.collection,
        "form": form,
        "origins": chosen if chosen and set(chosen) != every else None,
        "asked": asked.options if form.is_set else None,
        "leave_out_failed": form.labels and "leave_out_failed" in request.POST,
        "aggregate": aggregate,
        "assessors": [whose] if whose in ("people", "judges") and aggregate else [],
    }


@action("admin")
@require_POST
def preview(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show what an export would hold, without making it; HTMX asks for that part alone."""
    form = EVERY.get(request.POST.get("format", ""))
    asked = SetForm(request.POST, request.FILES, collection=scope.collection)
    shown: dict[str, Any] = {"scope": scope, "preview": None, "failure": "", "asked": asked}
    if form is None:
        shown["failure"] = _("Choose a format.")
    elif form.is_set and not asked.is_valid():
        shown["failure"] = _("Some options are not valid.")
    elif listing.is_large(form, scope.collection):
        shown["failure"] = _("This export is too large for a preview.")
    else:
        try:
            shown["preview"] = preview_export(**_read_choices(request, scope, form, asked))
        except BadInput as error:
            shown["failure"] = str(error)
    status = 422 if shown["failure"] else 200
    if request.headers.get("HX-Request"):
        return render(request, "exports/_preview.html", shown, status=status)
    return _exports_page(request, scope, _snapshot_context(scope) | shown, asked, status=status)


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
    try:
        snapshot = create_snapshot(user=scope.user, **_read_choices(request, scope, form, asked))
    except BadInput as error:
        show_refusal(asked, error)
        return _exports_page(request, scope, _snapshot_context(scope), asked, status=422)
    # Where no worker lives, the page waits for a large one all the same.
    if listing.is_large(form, scope.collection) and workers.has_workers():
        background.enqueue(listing.MAKE, snapshot.pk)
        messages.info(request, _("Creating the export. Progress is shown below."))
        return redirect("exports", scope.collection.name)
    try:
        write_snapshot(snapshot)
        rows = snapshot.manifest["counts"]["rows"]
        messages.success(request, _("%(manifest)s rows are ready.") % {"manifest": f"{rows:,}"})
    except BadInput as error:
        # Options that are refused leave no row behind; a failure of ours stands in the list.
        snapshot.delete()
        show_refusal(asked, error)
        return _exports_page(request, scope, _snapshot_context(scope), asked, status=422)
    except OSError:
        messages.error(request, _("The export failed and wrote no files. The list below gives the reason."))
    return redirect("exports", scope.collection.name)


@action("admin")
@require_safe
def export_file(request: HttpRequest, scope: Scope, snapshot: int, file: str) -> HttpResponseBase:
    """Download a file of a snapshot."""
    rows = Snapshot.objects.select_related("collection")
    row = numbered_or_404(rows, scope.collection, snapshot, _("Export not found."))
    path = listing.file_of(row, file)
    if path is None:
        raise Http404(_("File not found."))
    name = f"{scope.collection.name}-{row.number}-{file.replace('/', '-')}"
    return send_file(request, path, name=name)
