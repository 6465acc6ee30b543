"""Addresses of the page of label quality, of actions on label audits and of statistics."""

from django.urls import URLPattern, path

from annotation.quality.label_quality import views

urlpatterns: list[URLPattern] = [
    path("c/<slug:name>/quality/", views.quality, name="quality"),
    path("c/<slug:name>/quality/readiness/", views.readiness, name="readiness"),
    path("c/<slug:name>/quality/over-time/", views.over_time, name="agreement_over_time"),
    path("c/<slug:name>/audits/<int:campaign>/draw/", views.draw_more, name="audit_draw"),
    path("c/<slug:name>/audits/<int:campaign>/to-people/", views.to_people, name="audit_to_people"),
    path("c/<slug:name>/audits/<int:campaign>/go-on/", views.go_on, name="audit_go_on"),
    path("c/<slug:name>/statistics/refresh/", views.recompute, name="recompute"),
]
