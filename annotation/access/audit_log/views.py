"""Pages of the audit log: of a collection for its admins, of the site for owners."""

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
    """Show the actions in the collection, or on the whole site with sign-ins and accounts."""
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
    """Download the filtered entries as a file. A POST, because the log records the export."""
    filters = selectors.AuditLogFilters.read(request.POST)
    lines, kind, name = FORMATS.get(request.POST.get("format", ""), FORMATS["csv"])
    # Recorded before the first line is sent, because an incomplete download has lines too.
    record(scope, "audit.exported", format=name.rpartition(".")[2], filters=filters.query())
    entries = selectors.filter_records(scope.collection, filters)
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingHttpResponse(lines(entries), content_type=kind, headers=headers)


collection_log = action("admin", "GET")(_render_log)
site_log = action("own-site", "GET")(_render_log)
export_collection_log = action("admin", "POST")(_export_log)
export_site_log = action("own-site", "POST")(_export_log)
