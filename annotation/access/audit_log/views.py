"""The audit log of a collection (its admins) and of the site (owners): page, filters, export."""

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render

from annotation.access.audit_log import selectors
from annotation.access.audit_log.recording import ACTS, KINDS, acts_of_kind, record
from annotation.access.permissions import Scope, SiteScope, action

FORMATS = {
    "csv": (selectors.csv_lines, "text/csv; charset=utf-8", "audit-log.csv"),
    "jsonl": (selectors.json_lines, "application/x-ndjson; charset=utf-8", "audit-log.jsonl"),
}


def _render_log(request: HttpRequest, scope: Scope | SiteScope) -> HttpResponse:
    """Show what was done in this collection; the site's page: anywhere, sign-ins, accounts too."""
    filters = selectors.AuditLogFilters.read(request.GET)
    before = request.GET.get("before", "")
    key = int(before) if before.isdecimal() and len(before) <= 18 else None
    context = {
        "scope": scope,
        "filters": filters,
        "query": filters.query(),
        "page": selectors.load_page(scope.collection, filters, before=key),
        "kinds": [(key, title, [(act, ACTS[act]) for act in acts_of_kind(key)]) for key, (title, _) in KINDS.items()],
    }
    return render(request, "audit_log/audit_log.html", context)


def _export_log(request: HttpRequest, scope: Scope | SiteScope) -> HttpResponseBase:
    """Send the filtered entries as a file. A POST, because it is an act that the log records."""
    filters = selectors.AuditLogFilters.read(request.POST)
    lines, kind, name = FORMATS.get(request.POST.get("format", ""), FORMATS["csv"])
    # Before the first line is sent: a download that breaks off took lines with it, too.
    record(scope, "audit.exported", format=name.rpartition(".")[2], filters=filters.query())
    found = selectors.filter_records(scope.collection, filters)
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingHttpResponse(lines(found), content_type=kind, headers=headers)


collection_log = action("admin", "GET")(_render_log)
site_log = action("own-site", "GET")(_render_log)
export_collection_log = action("admin", "POST")(_export_log)
export_site_log = action("own-site", "POST")(_export_log)
