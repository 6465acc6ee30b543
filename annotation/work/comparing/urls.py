"""Addresses of comparisons: an admin's sets, and the page on which people compare."""

from django.urls import URLPattern, path

from annotation.work.comparing import views

urlpatterns: list[URLPattern] = [
    path("c/<slug:name>/comparisons/", views.comparisons, name="comparisons"),
    path("c/<slug:name>/comparisons/<int:number>/", views.comparison_set, name="comparison_set"),
    path("c/<slug:name>/comparisons/<int:number>/<slug:act>/", views.control_set, name="control_comparisons"),
    path("c/<slug:name>/compare/", views.compare, name="compare"),
    path("c/<slug:name>/compare/next/", views.compare_next, name="compare_next"),
    path("c/<slug:name>/compare/answer/", views.compare_answer, name="compare_answer"),
    path("c/<slug:name>/compare/undo/", views.compare_undo, name="compare_undo"),
]
