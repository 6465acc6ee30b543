"""URLs of the pages of annotation: judging, administration, reports."""

from importlib import import_module

from django.urls import URLPattern

# Costs come before campaigns, whose `campaigns/<id>/<act>/` would match its URL.
ROOMS = (
    "work.judging", "work.comparing", "work.threads", "work.adjudication", "work.aspects", "people.accounts",
    "access.audit_log", "access.glossary", "quality.costs", "home.overview", "home.inbox", "home.sharing",
    "data.web_search", "data.imports", "data.bulk", "people", "home.campaigns",
    "quality.label_quality", "quality.label_errors", "quality.policies", "agreement", "exports.query_splits", "exports",
    "quality.panels", "home.judge_setup", "work.experiments", "work.comparing.by_judges", "work.quality_control",
)  # fmt: skip
urlpatterns: list[URLPattern] = [
    pattern for room in ROOMS for pattern in import_module(f"annotation.{room}.urls").urlpatterns
]
