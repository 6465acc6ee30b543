"""Addresses: choosing the panel."""

from django.urls import URLPattern, path

from annotation.panels.views import panels

urlpatterns: list[URLPattern] = [
    path("c/<slug:name>/panel/", panels.panel, name="panel"),
    path("c/<slug:name>/panel/use/", panels.use_panel, name="use_panel"),
    path("c/<slug:name>/panel/self-check/", panels.self_check, name="self_check"),
]
