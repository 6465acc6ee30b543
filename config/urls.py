"""Addresses. Each app brings its own; Django's admin is not mounted. /healthz and /readyz: config/health.py."""

from django.urls import include, path

handler500 = "config.away.server_error"

urlpatterns = [
    path("", include("annotation.urls")),
    path("", include("training.urls")),
    path("", include("benchmark.urls")),
    path("", include("api.urls")),
]
