"""Addresses of web searches."""

from django.urls import URLPattern, path

from annotation.data.web_search import views
from annotation.data.web_search.searching import WEB_SEARCHES
from judges.model_jobs.pages import control_path

HERE = "c/<slug:name>/import/web/"

urlpatterns: list[URLPattern] = [
    path(HERE, views.web_searches, name="web_searches"),
    path(f"{HERE}<int:search>/", views.web_search, name="web_search"),
    control_path(f"{HERE}<int:search>/", WEB_SEARCHES, "control_web_search"),
]
