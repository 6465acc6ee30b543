"""Addresses: the audit log."""

from django.urls import URLPattern, path

from annotation.views import audit_log

urlpatterns: list[URLPattern] = [
    path("audit-log/", audit_log.site_log, name="site_audit_log"),
    path("audit-log/export/", audit_log.export_site_log, name="export_site_audit_log"),
    path("c/<slug:name>/audit-log/", audit_log.collection_log, name="audit_log"),
    path("c/<slug:name>/audit-log/export/", audit_log.export_collection_log, name="export_audit_log"),
]
