"""Addresses of quality control: consent, checks, the test, gold."""

from django.urls import URLPattern, path

from annotation.quality_control.views import admin, gold

urlpatterns: list[URLPattern] = [
    path("c/<slug:name>/quality-control/", admin.quality_settings, name="quality_control"),
    path("c/<slug:name>/quality-control/checks/", admin.make_checks, name="make_checks"),
    path("c/<slug:name>/quality-control/checks/withdraw/", admin.withdraw_checks, name="withdraw_checks"),
    path("c/<slug:name>/quality-control/checks/arguments/", admin.write_arguments, name="write_arguments"),
    path("c/<slug:name>/quality-control/qualification/", admin.make_qualification, name="make_qualification"),
    path("c/<slug:name>/quality-control/consent/", admin.write_consent, name="write_consent"),
    path("c/<slug:name>/people/<int:member>/qualification/", admin.person_qualification, name="person_qualification"),
    path("c/<slug:name>/people/<int:member>/expert/", admin.person_expert, name="person_expert"),
    path("c/<slug:name>/gold/", gold.gold_sets, name="gold"),
    path("c/<slug:name>/gold/<int:gold_set>/", gold.gold_answers, name="gold_answers"),
    path("c/<slug:name>/gold/<int:gold_set>/end/", gold.gold_end, name="gold_end"),
]
