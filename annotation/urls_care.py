"""Addresses of care: consent, guidelines announced."""

from django.urls import URLPattern, path

from annotation.views import care

urlpatterns: list[URLPattern] = [
    path("c/<slug:name>/judge/consent/", care.judge_consent, name="judge_consent"),
    path("c/<slug:name>/judge/guidelines/", care.judge_guidelines, name="judge_guidelines"),
]
