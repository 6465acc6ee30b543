"""The entries of the menu with their tabs, in the only place that knows the pages of all apps.

A page belongs to the tab whose address is the longest prefix of its own, so that pages need not be listed.
"""

from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import Promise, SimpleLazyObject
from django.utils.translation import gettext_lazy as _

from annotation.access.permissions import Scope
from annotation.models import Role
from store.sql import read_sql


@dataclass(frozen=True)
class Tab:
    """A page in the menu, for all pages whose addresses begin with its own or with one of `also`."""

    url: str
    title: Promise
    also: tuple[str, ...] = ()  # Relative to the collection's address.


@dataclass(frozen=True)
class Entry:
    """An entry of the menu, which opens its first tab."""

    key: str
    title: Promise
    tabs: tuple[Tab, ...]
    role: Role = Role.ADMIN  # The lowest role that sees it.


WORK = (
    Entry("judge", _("Judge"), (Tab("judge", _("Judge"), ("gold/grade/", "gold/review/")),), Role.ANNOTATOR),
    Entry("adjudicate", _("Adjudicate"), (Tab("adjudicate", _("Adjudicate")),), Role.ADJUDICATOR),
    Entry("aspects", _("Aspects"), (Tab("aspects", _("Aspects")),), Role.ADJUDICATOR),
    Entry(
        "mine",
        _("My work"),
        (Tab("judge_history", _("My work")), Tab("reference_study", _("Answer study"))),
        Role.ANNOTATOR,
    ),
)
ADMIN = (
    Entry("overview", _("Overview"), (Tab("collection", _("Overview")),)),
    Entry(
        "data",
        _("Data"),
        (
            Tab("pairs", _("Pairs")),
            Tab("import", _("Import")),
            Tab("web_searches", _("Web search")),
            Tab("statistics", _("Statistics")),
        ),
    ),
    Entry(
        "judging",
        _("Judging"),
        (
            Tab("campaigns", _("Campaigns")),
            Tab("models", _("Models")),
            Tab("panel", _("Panel")),
            Tab("policies", _("Policies")),
            Tab("canaries", _("Canaries")),
            Tab("prices", _("Prices")),
        ),
    ),
    Entry(
        "people",
        _("People"),
        (
            Tab("members", _("Members"), ("people/", "invitations/", "quality-control/exclusions/")),
            Tab("quality_control", _("Attention checks")),
            Tab("gold", _("Gold")),
        ),
    ),
    Entry(
        "quality",
        _("Quality"),
        (
            Tab("quality", _("Quality"), ("audits/", "agreement/")),
            Tab("label_errors", _("Suspected label errors")),
            Tab("debate_effect", _("Debate effect study"), ("debate-effect.",)),
        ),
    ),
    Entry(
        "train",
        _("Train & export"),
        (
            Tab("exports", _("Exports")),
            Tab("training", _("Training")),
            Tab("learning_curves", _("Learning curves")),
        ),
    ),
    Entry(
        "benchmark",
        _("Benchmark"),
        (
            Tab("benchmark", _("Leaderboard")),
            Tab("runs", _("Runs")),
            Tab("hole_fillings", _("Hole filling")),
            Tab("benchmark_queries", _("Queries")),
            Tab("qrels", _("Qrels")),
            Tab("answers", _("Answers")),
            Tab("agents", _("Agents")),
            Tab("syntheses", _("Synthesis")),
        ),
    ),
)
GEAR = Entry(
    "gear",
    _("Settings"),
    (Tab("settings", _("Settings")), Tab("webhooks", _("Webhooks")), Tab("audit_log", _("Audit log"))),
)

MANY = 100_000  # Pairs and conflicts are counted up to here.
CONFLICTS = """
    SELECT count(*) FROM (
        SELECT FROM corpus_item WHERE collection_id = %(collection)s AND state = 'conflict' LIMIT %(many)s) conflicts
"""
COUNTS = read_sql(__file__, "count_navigation")


def navigation_context(request: HttpRequest) -> dict[str, Any]:
    """Return the variable `navigation` of templates, which is evaluated only if a template shows it."""
    return {"navigation": SimpleLazyObject(lambda: build_navigation(request))}


def build_navigation(request: HttpRequest) -> dict[str, Any]:
    """Return the user's menu entries, current tabs and settings tabs; {} outside collections."""
    scope = getattr(request, "scope", None)
    if not isinstance(scope, Scope):
        return {}
    work = [entry for entry in WORK if scope.may_judge and scope.role >= entry.role]
    entries = ADMIN if scope.may_admin else work
    collection_address = reverse("collection", args=[scope.collection.name])
    best_match = max(
        (
            (len(address), entry, tab)
            for entry in (*entries, *work, GEAR)
            for tab in entry.tabs
            for address in (
                reverse(tab.url, args=[scope.collection.name]),
                *(collection_address + part for part in tab.also),
            )
            # The Overview's address is a prefix of all others.
            if request.path == address or (request.path.startswith(address) and address != collection_address)
        ),
        key=lambda row: row[0],
        default=(0, None, None),
    )
    _length, current, current_tab = best_match
    at_work = scope.may_admin and current in work

    def show(tab: Tab) -> dict[str, Any]:
        return {
            "url": reverse(tab.url, args=[scope.collection.name]),
            "title": tab.title,
            "current": tab is current_tab,
        }

    # The counts of the entries, by key, and the stored alpha of Quality, in one statement.
    with connection.cursor() as cursor:
        cursor.execute(COUNTS if scope.may_admin else CONFLICTS, {"collection": scope.collection.pk, "many": MANY})
        row = cursor.fetchone() or ()
    keys = ("adjudicate", "data", "judging", "people", "train", "benchmark", "quality", "disabled_webhooks")
    counts: dict[str, float | None] = dict(zip(keys, row, strict=False))
    menu = [
        show(entry.tabs[0])
        | {"key": entry.key, "title": entry.title, "current": entry is current, "count": counts.get(entry.key)}
        for entry in entries
    ]
    # Admins who judge keep their menu on the left: there, the entries of the work are tabs.
    tabs = [entry.tabs[0] for entry in work] if at_work else (current.tabs if current else ())
    return {
        "collection": scope.collection,
        "entries": menu,
        "tabs": [show(tab) for tab in tabs] if len(tabs) > 1 else [],
        "gear": [show(tab) for tab in GEAR.tabs] if scope.may_admin else [],
        "work": [show(entry.tabs[0]) for entry in work],
        "disabled_webhooks": counts.get("disabled_webhooks", 0),
        "judge": show(WORK[0].tabs[0]) if scope.may_admin and scope.may_judge and not at_work else None,
    }
