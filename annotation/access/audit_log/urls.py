"""Addresses of the audit log."""

from django.urls import URLPattern, path

from annotation.access.audit_log import views

urlpatterns: list[URLPattern] = [
    path("audit-log/", views.site_log, name="site_audit_log"),
    path("audit-log/export/", views.export_site_log, name="export_site_audit_log"),
    path("c/<slug:name>/audit-log/", views.collection_log, name="audit_log"),
    path("c/<slug:name>/audit-log/export/", views.export_collection_log, name="export_audit_log"),
]
