"""Addresses. Each app brings its own; Django's admin is not mounted."""

from django.urls import include, path

urlpatterns = [
    path("accounts/", include("allauth.urls")),
    path("", include("annotation.urls")),
]
