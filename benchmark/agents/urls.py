"""Addresses of agents."""

from django.urls import URLPattern, path

from benchmark.agents import study_views, views
from benchmark.agents.jobs import AGENTS
from judges.model_jobs.pages import control_path

HERE = "c/<slug:name>/benchmark/agents/"

urlpatterns: list[URLPattern] = [
    path(HERE, views.agents, name="agents"),
    path(f"{HERE}references/", views.reference_answers, name="reference_answers"),
    path(f"{HERE}study/", study_views.reference_study, name="reference_study"),
    path(f"{HERE}study/write/", study_views.write_study_answer, name="write_study_answer"),
    path(f"{HERE}study/rate/", study_views.rate_study_answers, name="rate_study_answers"),
    path(f"{HERE}study/<slug:act>/", study_views.control_study, name="control_study"),
    path(f"{HERE}start/<slug:work>/", views.start_agents, name="start_agents"),
    path(f"{HERE}traces/<int:trace>/", views.agent_trace, name="agent_trace"),
    path(f"{HERE}<int:agent_job>/traces/", views.agent_traces, name="agent_traces"),
    path(f"{HERE}<int:agent_job>/<slug:file>.jsonl", views.agent_file, name="agent_file"),
    control_path(f"{HERE}<int:agent_job>/", AGENTS, "control_agents"),
    path("suites/<int:suite>/agents/", views.suite_agents, name="suite_agents"),
]
