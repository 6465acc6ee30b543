"""Addresses: audits, policies compared, the second aggregate, statistics."""

from django.urls import URLPattern, path

from annotation.label_quality import views as trust
from annotation.policies import views

urlpatterns: list[URLPattern] = [
    path("c/<slug:name>/audits/", trust.audit, name="audits"),
    path("c/<slug:name>/audits/<int:campaign>/draw/", trust.draw_more, name="audit_draw"),
    path("c/<slug:name>/audits/<int:campaign>/to-people/", trust.to_people, name="audit_to_people"),
    path("c/<slug:name>/audits/<int:campaign>/go-on/", trust.go_on, name="audit_go_on"),
    path("c/<slug:name>/policies/", views.policies, name="policies"),
    path("c/<slug:name>/policies/compare/", views.compare_policies, name="compare_policies"),
    path("c/<slug:name>/agreement/aggregate/", trust.aggregate, name="aggregate"),
    path("c/<slug:name>/statistics/refresh/", trust.recompute, name="recompute"),
]
