"""Addresses: canaries."""

from django.urls import URLPattern, path

from annotation.panels.views import canaries

urlpatterns: list[URLPattern] = [
    path("c/<slug:name>/canaries/", canaries.page, name="canaries"),
    path("c/<slug:name>/canaries/ask/", canaries.ask, name="ask_canaries"),
    path("c/<slug:name>/canaries/schedule/", canaries.schedule, name="schedule_canaries"),
]
