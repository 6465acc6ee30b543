"""Addresses of care: consent, checks, the test, people paused or set aside, gold, near-duplicates."""

from django.urls import URLPattern, path

from annotation.quality_control.views import admin, gold

urlpatterns: list[URLPattern] = [
    path("c/<slug:name>/care/", admin.quality_settings, name="care"),
    path("c/<slug:name>/care/checks/", admin.make_checks, name="make_checks"),
    path("c/<slug:name>/care/checks/withdraw/", admin.withdraw_checks, name="withdraw_checks"),
    path("c/<slug:name>/care/checks/arguments/", admin.write_arguments, name="write_arguments"),
    path("c/<slug:name>/care/test/", admin.make_test, name="make_test"),
    path("c/<slug:name>/care/consent/", admin.write_consent, name="write_consent"),
    path("c/<slug:name>/care/aside/<int:act>/back/", admin.bring_back, name="bring_back"),
    path("c/<slug:name>/people/<int:member>/", admin.person, name="person"),
    path("c/<slug:name>/people/<int:member>/pause/", admin.person_pause, name="person_pause"),
    path("c/<slug:name>/people/<int:member>/aside/", admin.exclude_judgments, name="person_aside"),
    path("c/<slug:name>/people/<int:member>/test/", admin.person_test, name="person_test"),
    path("c/<slug:name>/people/<int:member>/expert/", admin.person_expert, name="person_expert"),
    path("c/<slug:name>/gold/", gold.gold_sets, name="gold"),
    path("c/<slug:name>/gold/<int:gold_set>/", gold.gold_answers, name="gold_answers"),
    path("c/<slug:name>/gold/<int:gold_set>/end/", gold.gold_end, name="gold_end"),
    path("c/<slug:name>/care/near-duplicates/", gold.near_duplicates, name="near_pairs"),
    path("c/<slug:name>/care/near-duplicates/compare/", gold.compare_near_duplicates, name="compare_near_pairs"),
]
