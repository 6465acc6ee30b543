"""Addresses of quality control: attention checks, the qualification test, consent, gold."""

from django.urls import URLPattern, path

from annotation.work.quality_control import views

urlpatterns: list[URLPattern] = [
    path("c/<slug:name>/quality-control/", views.quality_settings, name="quality_control"),
    path("c/<slug:name>/quality-control/checks/", views.make_checks, name="make_checks"),
    path("c/<slug:name>/quality-control/checks/withdraw/", views.withdraw_checks, name="withdraw_checks"),
    path("c/<slug:name>/quality-control/checks/arguments/", views.write_arguments, name="write_arguments"),
    path("c/<slug:name>/quality-control/qualification/", views.make_qualification, name="make_qualification"),
    path("c/<slug:name>/quality-control/consent/", views.write_consent, name="write_consent"),
    path("c/<slug:name>/people/<int:member>/qualification/", views.person_qualification, name="person_qualification"),
    path("c/<slug:name>/people/<int:member>/expert/", views.person_expert, name="person_expert"),
    path("c/<slug:name>/gold/", views.gold_sets, name="gold"),
    path("c/<slug:name>/gold/explanations/", views.upload_explanations, name="upload_explanations"),
    path("c/<slug:name>/gold/gold.csv", views.gold_csv, name="gold_csv"),
    path("c/<slug:name>/gold/<int:gold_set>/", views.gold_answers, name="gold_answers"),
    path("c/<slug:name>/gold/<int:gold_set>/end/", views.gold_end, name="gold_end"),
]
