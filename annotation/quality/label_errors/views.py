"""The page of suspected label errors. It changes no label: selected pairs are sent to people."""

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from annotation.access.audit_log.recording import record
from annotation.access.permissions import Scope, action
from annotation.quality.label_errors import files, suspects
from jobs import leases

SHOWN = 50


@action("admin")
@require_GET
def label_errors(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show suspected label errors, the most suspicious first; HTMX asks for the state of the search."""
    job = suspects.LABEL_ERRORS.read(scope.collection).job
    is_running = job is not None and not job.is_over
    context: dict[str, Any] = {"scope": scope, "job": job, "is_running": is_running}
    if request.headers.get("HX-Request"):
        response = render(request, "label_errors/_state.html", context, status=200 if is_running else 286)
        if not is_running:  # The list is new, so the page reloads.
            response["HX-Refresh"] = "true"
        return response
    result = suspects.read_suspects(scope.collection)
    if (form := request.GET.get("as")) is not None:
        if form not in files.TYPES:
            raise Http404(_("File not found."))
        text = files.write_list(suspects.describe_suspects(scope.collection, result["suspects"]), form)
        headers = {"Content-Disposition": f'attachment; filename="{scope.collection.name}-label-errors.{form}"'}
        return HttpResponse(text, content_type=f"{files.TYPES[form]}; charset=utf-8", headers=headers)
    page = Paginator(result["suspects"], SHOWN).get_page(request.GET.get("page"))
    entries = suspects.describe_suspects(scope.collection, list(page.object_list), page.start_index())
    context |= {"found": result, "page": page, "shown": entries}
    return render(request, "label_errors/label_errors.html", context)


@action("admin")
@require_POST
def find_label_errors(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Search for label errors, in a worker where one is running."""
    with transaction.atomic():
        is_done = suspects.LABEL_ERRORS.refresh(scope.collection) is not None
        record(scope, "statistics.asked", what="label errors")
    if is_done:
        messages.success(request, _("Figures updated."))
    return redirect("label_errors", scope.collection.name)


@action("admin")
@require_POST
def cancel_label_errors(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Cancel a search for label errors; the earlier list is kept."""
    job = suspects.LABEL_ERRORS.read(scope.collection).job
    if job is None or not leases.cancel(job):
        messages.error(request, _("No changes made: the job's state no longer allows this action."))
    return redirect("label_errors", scope.collection.name)
