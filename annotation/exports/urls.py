"""Addresses: agreement, statistics and exports."""

from django.urls import URLPattern, path

from annotation.agreement import views
from annotation.exports import views as reports

urlpatterns: list[URLPattern] = [
    path("c/<slug:name>/agreement/", views.agreement, name="agreement"),
    path("c/<slug:name>/agreement/measure/", views.measure_agreement, name="measure_agreement"),
    path("c/<slug:name>/agreement/table.csv", views.agreement_csv, name="agreement_csv"),
    path("c/<slug:name>/agreement/two/", views.two_assessors, name="two_assessors"),
    path("c/<slug:name>/agreement/over-time/", views.over_time, name="agreement_over_time"),
    path("c/<slug:name>/agreement/people/", views.people_quality, name="people_quality"),
    path("c/<slug:name>/statistics/", reports.statistics, name="statistics"),
    path("c/<slug:name>/exports/", reports.exports, name="exports"),
    path("c/<slug:name>/exports/make/", reports.make_export, name="make_export"),
    path("c/<slug:name>/exports/<int:snapshot>/<path:file>", reports.export_file, name="export_file"),
]
