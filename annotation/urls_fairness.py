"""Addresses: the arms, and paired studies."""

from django.urls import URLPattern, path

from annotation.views import fairness

urlpatterns: list[URLPattern] = [
    path("c/<slug:name>/fairness/", fairness.fairness, name="fairness"),
    path("c/<slug:name>/fairness.json", fairness.fairness_json, name="fairness_json"),
    path("c/<slug:name>/fairness.csv", fairness.fairness_csv, name="fairness_csv"),
    path("c/<slug:name>/fairness/studies/", fairness.new_study, name="new_study"),
    path("c/<slug:name>/fairness/studies/<int:study>/end/", fairness.stop_study, name="stop_study"),
    path("c/<slug:name>/settings/arms/", fairness.arms_settings, name="arms_settings"),
]
