"""Addresses: the arms, and paired studies."""

from django.urls import URLPattern, path

from annotation.experiments import views

urlpatterns: list[URLPattern] = [
    path("c/<slug:name>/fairness/", views.debate_effect, name="fairness"),
    path("c/<slug:name>/fairness.json", views.debate_effect_json, name="fairness_json"),
    path("c/<slug:name>/fairness.csv", views.debate_effect_csv, name="fairness_csv"),
    path("c/<slug:name>/fairness/studies/", views.new_study, name="new_study"),
    path("c/<slug:name>/fairness/studies/<int:study>/end/", views.stop_study, name="stop_study"),
]
