"""Addresses of the comparison of policies and of the debate study."""

from django.urls import URLPattern, path

from annotation.quality.policies import views

urlpatterns: list[URLPattern] = [
    path("c/<slug:name>/policies/", views.policies, name="policies"),
    path("c/<slug:name>/policies/study/", views.debate_study, name="debate_study"),
    path("c/<slug:name>/policies/compare/", views.compare_policies, name="compare_policies"),
]
