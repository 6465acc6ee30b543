"""Addresses: agreement and exports."""

from django.urls import URLPattern, path

from annotation.views import reports

urlpatterns: list[URLPattern] = [
    path("c/<slug:name>/agreement/", reports.agreement, name="agreement"),
    path("c/<slug:name>/exports/", reports.exports, name="exports"),
]
