"""Addresses of the people's pages: judging, administration, reports."""

from importlib import import_module

from django.urls import URLPattern

# Costs before campaigns: there `campaigns/<id>/<act>/` would take its address.
ROOMS = (
    "judging", "adjudication", "aspects", "accounts", "audit_log", "glossary", "costs", "dashboard", "web_search",
    "imports", "bulk", "people", "campaigns", "label_quality", "label_errors", "policies", "agreement", "query_splits",
    "exports", "panels", "judge_setup", "experiments", "quality_control",
)  # fmt: skip
urlpatterns: list[URLPattern] = [
    pattern for room in ROOMS for pattern in import_module(f"annotation.{room}.urls").urlpatterns
]
