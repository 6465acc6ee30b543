"""Addresses of suspected label errors."""

from django.urls import URLPattern, path

from annotation.quality.label_errors import views

urlpatterns: list[URLPattern] = [
    path("c/<slug:name>/quality/label-errors/", views.label_errors, name="label_errors"),
    path("c/<slug:name>/quality/label-errors/find/", views.find_label_errors, name="find_label_errors"),
    path("c/<slug:name>/quality/label-errors/cancel/", views.cancel_label_errors, name="cancel_label_errors"),
]
