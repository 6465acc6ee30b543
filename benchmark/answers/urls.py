"""Addresses of answers."""

from django.urls import URLPattern, path

from benchmark.answers import views
from benchmark.answers.evaluations import ANSWERS
from judges.model_jobs.pages import control_path

HERE = "c/<slug:name>/benchmark/answers/"

urlpatterns: list[URLPattern] = [
    path(HERE, views.answers, name="answers"),
    path(f"{HERE}start/", views.start_answers, name="start_answers"),
    path(f"{HERE}<int:evaluation>/", views.answer_evaluation, name="answer_evaluation"),
    path(f"{HERE}<int:evaluation>/queries/", views.listed_answers, name="listed_answers"),
    path(f"{HERE}<int:evaluation>/queries/<int:query>/", views.judged_answer, name="judged_answer"),
    control_path(f"{HERE}<int:evaluation>/", ANSWERS, "control_answers"),
    path("suites/<int:suite>/answers/", views.suite_answers, name="suite_answers"),
]
