"""Addresses: statistics and exports."""

from django.urls import URLPattern, path

from annotation.exports import views

urlpatterns: list[URLPattern] = [
    path("c/<slug:name>/statistics/", views.statistics, name="statistics"),
    path("c/<slug:name>/exports/", views.exports, name="exports"),
    path("c/<slug:name>/exports/preview/", views.preview, name="preview_export"),
    path("c/<slug:name>/exports/make/", views.make_export, name="make_export"),
    path("c/<slug:name>/exports/<int:snapshot>/<path:file>", views.export_file, name="export_file"),
]
