"""Addresses: agreement and exports."""

from django.urls import URLPattern, path

from annotation.views import reports

urlpatterns: list[URLPattern] = [
    path("c/<slug:name>/agreement/", reports.agreement, name="agreement"),
    path("c/<slug:name>/agreement/table.csv", reports.agreement_csv, name="agreement_csv"),
    path("c/<slug:name>/statistics/", reports.statistics, name="statistics"),
    path("c/<slug:name>/exports/", reports.exports, name="exports"),
    path("c/<slug:name>/exports/make/", reports.make_export, name="make_export"),
    path("c/<slug:name>/exports/<int:snapshot>/<path:file>", reports.export_file, name="export_file"),
]
