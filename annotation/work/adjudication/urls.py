"""Addresses of adjudication."""

from django.urls import URLPattern, path

from annotation.work.adjudication import views

urlpatterns: list[URLPattern] = [
    path("c/<slug:name>/adjudicate/", views.adjudicate, name="adjudicate"),
    path("c/<slug:name>/adjudicate/submit/", views.adjudicate_submit, name="adjudicate_submit"),
    path("c/<slug:name>/adjudicate/undo/", views.adjudicate_undo, name="adjudicate_undo"),
]
