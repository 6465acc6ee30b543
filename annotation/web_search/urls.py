"""Addresses of web searches."""

from django.urls import URLPattern, path

from annotation.web_search import views

urlpatterns: list[URLPattern] = [
    path("c/<slug:name>/import/web/", views.web_searches, name="web_searches"),
    path("c/<slug:name>/import/web/<int:search>/", views.web_search, name="web_search"),
    path("c/<slug:name>/import/web/<int:search>/<slug:act>/", views.control_web_search, name="control_web_search"),
]
