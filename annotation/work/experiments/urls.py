"""Addresses: the arms, and paired studies."""

from django.urls import URLPattern, path

from annotation.work.experiments import views

urlpatterns: list[URLPattern] = [
    path("c/<slug:name>/debate-effect/", views.debate_effect, name="debate_effect"),
    path("c/<slug:name>/debate-effect.json", views.debate_effect_json, name="debate_effect_json"),
    path("c/<slug:name>/debate-effect.csv", views.debate_effect_csv, name="debate_effect_csv"),
    path("c/<slug:name>/debate-effect/studies/", views.new_study, name="new_study"),
    path("c/<slug:name>/debate-effect/studies/<int:study>/end/", views.stop_study, name="stop_study"),
]
