"""Addresses of panel selection and canaries."""

from django.urls import URLPattern, path

from annotation.quality.panels.views import canaries, panels

urlpatterns: list[URLPattern] = [
    path("c/<slug:name>/panel/", panels.panel, name="panel"),
    path("c/<slug:name>/panel/use/", panels.use_panel, name="use_panel"),
    path("c/<slug:name>/panel/self-check/", panels.self_check, name="self_check"),
    path("c/<slug:name>/canaries/", canaries.show_canaries, name="canaries"),
    path("c/<slug:name>/canaries/ask/", canaries.send_canaries, name="ask_canaries"),
    path("c/<slug:name>/canaries/schedule/", canaries.set_canary_schedule, name="schedule_canaries"),
]
