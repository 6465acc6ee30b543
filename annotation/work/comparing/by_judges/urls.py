"""Addresses of comparisons by judges."""

from django.urls import URLPattern, path

from annotation.work.comparing.by_judges import views
from annotation.work.comparing.by_judges.judging import COMPARISON_JUDGINGS
from judges.model_jobs.pages import control_path

HERE = "c/<slug:name>/comparisons/judges/"

urlpatterns: list[URLPattern] = [
    path(HERE, views.start_judging, name="start_comparison_judging"),
    path(f"{HERE}<int:judging>/", views.comparison_judging, name="comparison_judging"),
    control_path(f"{HERE}<int:judging>/", COMPARISON_JUDGINGS, "control_comparison_judging"),
]
