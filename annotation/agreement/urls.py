"""Addresses of agreement."""

from django.urls import URLPattern, path

from annotation.agreement import views

urlpatterns: list[URLPattern] = [
    path("c/<slug:name>/agreement/measure/", views.measure_agreement, name="measure_agreement"),
    path("c/<slug:name>/agreement/table.csv", views.agreement_csv, name="agreement_csv"),
]
