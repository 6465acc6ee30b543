"""URLs of the page of models."""

from django.urls import URLPattern, path

from annotation.home.judge_setup import views

urlpatterns: list[URLPattern] = [
    path("c/<slug:name>/models/", views.models, name="models"),
    path("c/<slug:name>/models/add/", views.add_model, name="add_model"),
    path("c/<slug:name>/models/<int:version>/", views.model, name="model"),
    path("c/<slug:name>/models/<int:version>/<slug:act>/", views.control_model, name="control_model"),
    path("c/<slug:name>/models/load/", views.load_file, name="load_judges_file"),
    path("c/<slug:name>/models/test/", views.test_model, name="test_model"),
    path("c/<slug:name>/models/panel/", views.choose_members, name="choose_members"),
]
