"""Addresses of campaigns."""

from django.urls import URLPattern, path

from annotation.home.campaigns import views

urlpatterns: list[URLPattern] = [
    path("c/<slug:name>/campaigns/", views.campaigns, name="campaigns"),
    path("c/<slug:name>/campaigns/start/", views.start, name="start_campaign"),
    path("c/<slug:name>/campaigns/evidence/", views.write_evidence, name="write_evidence"),
    path("c/<slug:name>/campaigns/<int:campaign>/<slug:act>/", views.control, name="control_campaign"),
]
