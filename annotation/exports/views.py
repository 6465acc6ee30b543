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
from annotation.exports.formats import ALL_FORMATS, FORMATS, SETS
from annotation.exports.forms import ExportForm
from annotation.exports.label_sources.failed_routes import list_failed_routes
from annotation.exports.preview import preview_export
from annotation.exports.services import create_export, needs_worker
from annotation.models.snapshots import Snapshot
from corpus.chart_downloads import download
from corpus.errors import BadInput
from corpus.numbered import numbered_or_404
from store.downloads import send_file


@action("results")
@require_GET
def statistics(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the counts of the collection, and the outcomes of its candidates by round."""
    context = {"scope": scope, "found": statistics_of(scope.collection)}
    return render(request, "exports/statistics.html", context)


@action("results")
@require_GET
def exports(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the exports and the form for a new one.

    A download of a chart, and a request of HTMX for the list while an export is made, are answered first.
    """
    listed_exports = listing.list_exports(scope.collection)
    charts = chain.from_iterable(export.balance_charts for export in listed_exports)
    if "chart" in request.GET and (file := download(request, charts)):
        return file
    if request.headers.get("HX-Request"):
        is_making = any(export.is_in_progress for export in listed_exports)
        context = {"scope": scope, "snapshots": listed_exports, "making": is_making}
        # 286 tells HTMX to stop asking.
        return render(request, "exports/_snapshots.html", context, status=200 if is_making else 286)
    format_name = request.GET.get("format", "")
    initial = {
        "format": format_name if format_name in ALL_FORMATS else next(iter(ALL_FORMATS)),
        "qrels": request.GET.get("qrels"),
    }
    form = ExportForm(collection=scope.collection, initial=initial)
    return _render_page(request, scope, form, listed_exports=listed_exports)


def _render_page(
    request: HttpRequest,
    scope: Scope,
    form: ActionForm,
    listed_exports: list[listing.ListedExport] | None = None,
    **preview: Any,
) -> HttpResponse:
    """Render the page with a form, and with the preview of an export if there is one."""
    exports = listing.list_exports(scope.collection) if listed_exports is None else listed_exports
    failed_routes = [route for route in list_failed_routes(scope.collection) if route.pairs]
    context = {
        "scope": scope,
        "snapshots": exports,
        "making": any(export.is_in_progress for export in exports),
        "formats": FORMATS.values(),
        "sets": SETS.values(),
        "asked": form,
        "failed_routes": failed_routes,
        "failed_pairs": sum(route.pairs for route in failed_routes),
        **preview,
    }
    is_refused = form.is_bound and not preview.get("preview")
    return render(request, "exports/exports.html", context, status=422 if is_refused else 200)


@action("admin")
@require_POST
def preview(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the contents of an export without making it; HTMX gets the preview alone."""
    form = ExportForm(request.POST, request.FILES, collection=scope.collection)
    result: dict[str, Any] = {"preview": None, "failure": ""}
    if not form.is_valid():
        result["failure"] = _("Some options are not valid.")
    elif needs_worker(form.options.form, scope.collection):
        result["failure"] = _("This export is too large for a preview.")
    else:
        try:
            result["preview"] = preview_export(scope.collection, form.options)
        except BadInput as error:
            result["failure"] = str(error)
    if request.headers.get("HX-Request"):
        context, status = {"scope": scope, "asked": form, **result}, 422 if result["failure"] else 200
        return render(request, "exports/_preview.html", context, status=status)
    return _render_page(request, scope, form, **result)


@action("admin")
@require_POST
def make_export(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Make an export: a small one at once, a large one in a worker."""

    def confirm(snapshot: Snapshot) -> str:
        if snapshot.state == Snapshot.State.READY:
            rows = snapshot.manifest["counts"]["rows"]
            messages.success(request, _("%(manifest)s rows are ready.") % {"manifest": f"{rows:,}"})
        else:
            messages.info(request, _("Creating the export. Progress is shown below."))
        return f"{address}#export-{snapshot.number}"

    address = reverse("exports", args=[scope.collection.name])
    form = ExportForm(request.POST, request.FILES, collection=scope.collection)
    try:
        return answer_action(request, scope, create_export, form, partial(_render_page, request, scope), confirm)
    except OSError:
        messages.error(request, _("The export failed and wrote no files. The list below gives the reason."))
    return redirect(address)


@action("admin")
@require_safe
def export_file(request: HttpRequest, scope: Scope, snapshot: int, file: str) -> HttpResponseBase:
    """Download a file of a snapshot."""
    rows = Snapshot.objects.select_related("collection")
    row = numbered_or_404(rows, scope.collection, snapshot, _("Export not found."))
    path = listing.find_file(row, file)
    if path is None:
        raise Http404(_("File not found."))
    name = f"{scope.collection.name}-{row.number}-{file.replace('/', '-')}"
    return send_file(request, path, name=name)
