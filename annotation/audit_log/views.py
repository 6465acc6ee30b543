"""The audit log of a collection (its admins) and of the site (owners): page, filters, export."""

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_GET, require_POST

from annotation.audit_log import selectors
from annotation.audit_log.recording import ACTS, record
from annotation.permissions import Scope, SiteScope, action

FORMATS = {
    "csv": (selectors.csv_lines, "text/csv; charset=utf-8", "audit-log.csv"),
    "jsonl": (selectors.json_lines, "application/x-ndjson; charset=utf-8", "audit-log.jsonl"),
}


@action("admin")
@require_GET
def collection_log(request: HttpRequest, scope: Scope) -> HttpResponse:
    """What was done in this collection."""
    return _render_log(request, scope)


@action("own-site")
@require_GET
def site_log(request: HttpRequest, scope: SiteScope) -> HttpResponse:
    """What was done anywhere, sign-ins and accounts too."""
    return _render_log(request, scope)


@action("admin")
@require_POST
def export_collection_log(request: HttpRequest, scope: Scope) -> HttpResponseBase:
    """The filtered entries as a file. A POST, because it is an act that the log tells of."""
    return _export_log(request, scope)


@action("own-site")
@require_POST
def export_site_log(request: HttpRequest, scope: SiteScope) -> HttpResponseBase:
    """The same for the whole site."""
    return _export_log(request, scope)


def _render_log(request: HttpRequest, scope: Scope | SiteScope) -> HttpResponse:
    filters = selectors.AuditLogFilters.read(request.GET)
    before = request.GET.get("before", "")
    key = int(before) if before.isdecimal() and len(before) <= 18 else None
    context = {
        "scope": scope,
        "section": "audit-log",
        "filters": filters,
        "query": filters.query(),
        "page": selectors.load_page(scope.collection, filters, before=key),
        "acts": ACTS,
    }
    return render(request, "audit_log/audit_log.html", context)


def _export_log(request: HttpRequest, scope: Scope | SiteScope) -> HttpResponseBase:
    filters = selectors.AuditLogFilters.read(request.POST)
    lines, kind, name = FORMATS.get(request.POST.get("format", ""), FORMATS["csv"])
    record(scope, "audit.exported", format=name.rpartition(".")[2], filters=filters.query())
    found = selectors.filter_records(scope.collection, filters)
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingHttpResponse(lines(found), content_type=kind, headers=headers)
