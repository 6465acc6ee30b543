"""Addresses of the gate."""

from django.urls import URLPattern, path

from benchmark.gate import views

HERE = "c/<slug:name>/benchmark/gate/"

urlpatterns: list[URLPattern] = [
    path(HERE, views.gates, name="gates"),
    path(f"{HERE}decide/", views.decide_gate, name="decide_gate"),
    path(f"{HERE}<int:gate>/", views.gate, name="gate"),
    path(f"{HERE}<int:gate>/judge/", views.judge_deciding, name="judge_deciding"),
    path(f"{HERE}<int:gate>/again/", views.decide_again, name="decide_gate_again"),
]
