"""Pages of statistics and exports."""

from functools import partial
from itertools import chain
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST, require_safe

from actions.options import ActionForm
from actions.pages import answer_action
from annotation.access.permissions import Scope, action
from annotation.data.statistics import statistics_of
from annotation.exports import listing
from annotation.exports.formats import EVERY, FORMATS, SETS
from annotation.exports.forms import ExportForm
from annotation.exports.label_sources.failed_routes import list_failed_routes
from annotation.exports.preview import preview_export
from annotation.exports.services import create_export
from annotation.models.snapshots import Snapshot
from annotation.quality.label_quality.loading import load_label_quality
from corpus.chart_downloads import download
from corpus.errors import BadInput
from corpus.numbered import numbered_or_404
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
    """Show the exports and the form for a new one. HTMX asks for the list while one is made."""
    context = _list_context(scope)
    if file := download(request, chain.from_iterable(one.balance_charts for one in context["snapshots"])):
        return file
    if request.headers.get("HX-Request"):
        # 286 tells HTMX to stop asking.
        return render(request, "exports/_snapshots.html", context, status=200 if context["making"] else 286)
    chosen = request.GET.get("format", "")
    initial = {"format": chosen if chosen in EVERY else next(iter(EVERY)), "qrels": request.GET.get("qrels")}
    return _render_page(request, scope, ExportForm(collection=scope.collection, initial=initial))


def _list_context(scope: Scope) -> dict[str, Any]:
    snapshots = listing.list_exports(scope.collection)
    return {"scope": scope, "snapshots": snapshots, "making": any(one.is_in_progress for one in snapshots)}


def _render_page(request: HttpRequest, scope: Scope, form: ActionForm, **more: Any) -> HttpResponse:
    failed = [route for route in list_failed_routes(scope.collection) if route.pairs]
    context = _list_context(scope) | {
        "formats": FORMATS.values(),
        "sets": SETS.values(),
        "asked": form,
        "quality": load_label_quality(scope.collection),
        "failed_routes": failed,
        "failed_pairs": sum(route.pairs for route in failed),
        **more,
    }
    refused = form.is_bound and not more.get("preview")
    return render(request, "exports/exports.html", context, status=422 if refused else 200)


@action("admin")
@require_POST
def preview(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show what an export would hold, without making it; HTMX asks for that part alone."""
    form = ExportForm(request.POST, request.FILES, collection=scope.collection)
    shown: dict[str, Any] = {"preview": None, "failure": ""}
    if not form.is_valid():
        shown["failure"] = _("Some options are not valid.")
    elif listing.is_large(form.options.form, scope.collection):
        shown["failure"] = _("This export is too large for a preview.")
    else:
        try:
            shown["preview"] = preview_export(scope.collection, form.options)
        except BadInput as error:
            shown["failure"] = str(error)
    if request.headers.get("HX-Request"):
        context, status = {"scope": scope, "asked": form, **shown}, 422 if shown["failure"] else 200
        return render(request, "exports/_preview.html", context, status=status)
    return _render_page(request, scope, form, **shown)


@action("admin")
@require_POST
def make_export(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Make an export: a small one at once, a large one by a worker."""

    def done(snapshot: Snapshot) -> str:
        if snapshot.state == Snapshot.State.READY:
            rows = snapshot.manifest["counts"]["rows"]
            messages.success(request, _("%(manifest)s rows are ready.") % {"manifest": f"{rows:,}"})
        else:
            messages.info(request, _("Creating the export. Progress is shown below."))
        return address

    address = reverse("exports", args=[scope.collection.name])
    form = ExportForm(request.POST, request.FILES, collection=scope.collection)
    try:
        return answer_action(request, scope, create_export, form, partial(_render_page, request, scope), done)
    except OSError:
        messages.error(request, _("The export failed and wrote no files. The list below gives the reason."))
    return redirect(address)


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
