"""Addresses of queries that are held out of training sets."""

from django.urls import URLPattern, path

from annotation.exports.query_splits import views

urlpatterns: list[URLPattern] = [
    path("c/<slug:name>/exports/lists/", views.query_lists, name="query_lists"),
    path("c/<slug:name>/exports/lists/<slug:split>/delete/", views.delete_query_list, name="delete_query_list"),
]
