"""Addresses. Each app brings its own; Django's admin is not mounted."""

from django.urls import include, path

from config.health import healthz

urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("", include("annotation.urls")),
    path("", include("training.urls")),
    path("", include("benchmark.urls")),
]
