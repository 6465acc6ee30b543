"""URLs of search endpoints, which are the site's."""

from django.urls import URLPattern, path

from benchmark.search_endpoints import views

HERE = "search-endpoints/"

urlpatterns: list[URLPattern] = [
    path(HERE, views.search_endpoints, name="search_endpoints"),
    path(f"{HERE}add/<slug:engine>/", views.add_search_endpoint, name="add_search_endpoint"),
    path(f"{HERE}<int:endpoint>/", views.search_endpoint, name="search_endpoint"),
    path(f"{HERE}<int:endpoint>/test/", views.test_search_endpoint, name="test_search_endpoint"),
    path(f"{HERE}<int:endpoint>/delete/", views.delete_search_endpoint, name="delete_search_endpoint"),
]
