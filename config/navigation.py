"""The entries of the menu with their tabs, in the only place that knows the pages of all apps.

A page belongs to the tab whose address is the longest prefix of its own, so that pages need not be listed.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from django.db import connection
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import Promise, SimpleLazyObject
from django.utils.translation import gettext_lazy as _

from annotation.access.permissions import Scope, SiteScope
from annotation.access.readable import action_of
from annotation.models import Role
from annotation.work.threads.selectors import count_unread
from corpus.models import Collection
from store.sql import read_sql


@dataclass(frozen=True)
class Tab:
    """A page in the menu, for all pages whose addresses begin with its own or with one of `also`."""

    url: str
    title: Promise
    also: tuple[str, ...] = ()  # Relative to the collection's address.
    about: Promise | None = None  # What a page of the Lab is for.
    is_of_lab: bool = False  # Shown outside the Lab, but only while the collection has it.
    is_of_site: bool = False  # Its address names no collection.
    is_of_sets: bool = False  # Shown only while the collection has comparisons for people.


@dataclass(frozen=True)
class Entry:
    """An entry of the menu, which opens its first tab."""

    key: str
    title: Promise
    tabs: tuple[Tab, ...]
    role: Role = Role.ADMIN  # The lowest role that sees it.


WORK = (
    Entry("judge", _("Judge"), (Tab("judge", _("Judge"), ("gold/grade/", "gold/review/")),), Role.ANNOTATOR),
    Entry("compare", _("Compare"), (Tab("compare", _("Compare"), is_of_sets=True),), Role.ANNOTATOR),
    Entry("adjudicate", _("Adjudicate"), (Tab("adjudicate", _("Adjudicate")),), Role.ADJUDICATOR),
    Entry("aspects", _("Aspects"), (Tab("aspects", _("Aspects"), is_of_lab=True),), Role.ADJUDICATOR),
    Entry(
        "mine",
        _("My work"),
        (Tab("judge_history", _("My work")), Tab("reference_study", _("Reference study"), is_of_lab=True)),
        Role.ANNOTATOR,
    ),
    Entry("replies", _("Replies"), (Tab("replies", _("Replies")),), Role.ANNOTATOR),
)
ADMIN = (
    Entry(
        "overview",
        _("Overview"),
        (Tab("collection", _("Overview"), ("statistics/", "inbox/", "share/", "judge-by-hand/")),),
    ),
    Entry("data", _("Data"), (Tab("pairs", _("Pairs")), Tab("import", _("Import")))),
    Entry(
        "judging",
        _("Judging"),
        (Tab("campaigns", _("Campaigns"), ("comparisons/",)), Tab("models", _("Models")), Tab("prices", _("Prices"))),
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
        (Tab("quality", _("Quality"), ("audits/", "agreement/")), Tab("label_errors", _("Suspected label errors"))),
    ),
    Entry("train", _("Train & export"), (Tab("exports", _("Exports")), Tab("training", _("Training")))),
    Entry(
        "benchmark",
        _("Benchmark"),
        (
            Tab("benchmark", _("Leaderboard")),
            Tab("runs", _("Runs")),
            Tab("hole_fillings", _("Hole filling")),
            Tab("qrels", _("Qrels")),
        ),
    ),
)
# The pages of the Lab by group; a page shows its own group as tabs.
LAB: tuple[tuple[Promise, tuple[Tab, ...]], ...] = (
    (
        _("Judges"),
        (
            Tab(
                "policies",
                _("Policy comparison"),
                about=_("What other ways of judging would have labelled, cost and sent to people."),
            ),
            Tab(
                "panel",
                _("Panel study"),
                about=_("How good and how independent the judges are, and which sets of them would vote best."),
            ),
            Tab(
                "canaries",
                _("Canaries"),
                about=_("Documents that try to give judges orders, to see whether a judge obeys them."),
            ),
        ),
    ),
    (
        _("People"),
        (
            Tab(
                "debate_effect",
                _("Debate effect study"),
                ("debate-effect.",),
                _("Whether people judge otherwise when they read the debate."),
            ),
            Tab("aspects", _("Aspects"), about=_("What a good answer covers, and which documents cover each part.")),
            Tab(
                "reference_study",
                _("Reference study"),
                about=_("People write and rate reference answers, to compare with those of a model."),
            ),
        ),
    ),
    (
        _("Search systems"),
        (
            Tab("answers", _("Answers"), about=_("How good answers are that models write from each run's documents.")),
            Tab("agents", _("Agents"), about=_("How agents that search by themselves fare with each search system.")),
            Tab(
                "suites",
                _("Suites"),
                about=_("The same systems on several collections, with their means."),
                is_of_site=True,
            ),
            Tab(
                "syntheses",
                _("Synthetic queries"),
                about=_("Queries and passages that a model writes, for training or for judging."),
            ),
        ),
    ),
    (
        _("Trained models"),
        (
            Tab(
                "learning_curves",
                _("Learning curves"),
                about=_("How much better a reranker gets with more labels, and whether more are worth it."),
            ),
            Tab(
                "compare_trained",
                _("Compare trained models"),
                about=_("Rerankers on the same held-out queries, and what each loss of distillation adds."),
            ),
        ),
    ),
)
LAB_TAB = Tab("lab", _("Lab"), is_of_lab=True)
LAB_ENTRY = Entry("lab", _("Lab"), (LAB_TAB, *(tab for _title, tabs in LAB for tab in tabs)))
GEAR = Entry(
    "gear",
    _("Settings"),
    (Tab("settings", _("Settings")), Tab("webhooks", _("Webhooks")), Tab("audit_log", _("Audit log"))),
)
# The pages of the site's owners.
SITE = tuple(
    Entry(tab.url, tab.title, (tab,))
    for tab in (
        Tab("home", _("Collections"), is_of_site=True),
        Tab("site_accounts", _("Site accounts"), is_of_site=True),
        Tab("search_endpoints", _("Search endpoints"), is_of_site=True),
        Tab("backups", _("Backups"), is_of_site=True),
        Tab("site_audit_log", _("Audit log"), is_of_site=True),
    )
)

MANY = 100_000  # Pairs and conflicts are counted up to here.
CONFLICTS = """
    SELECT
        (SELECT count(*) FROM (SELECT FROM corpus_item WHERE collection_id = %(collection)s AND state = 'conflict'
                               LIMIT %(many)s) conflicts),
        EXISTS (SELECT FROM annotation_comparisonset WHERE collection_id = %(collection)s AND people > 0
                AND paused_at IS NULL AND ended_at IS NULL)
"""
COUNTS = read_sql(__file__, "count_navigation")


def navigation_context(request: HttpRequest) -> dict[str, Any]:
    """Return the variable `navigation` of templates, which is evaluated only if a template shows it."""
    return {"navigation": SimpleLazyObject(lambda: build_navigation(request))}


def build_navigation(request: HttpRequest) -> dict[str, Any]:
    """Return the user's menu entries, current tabs and settings tabs; outside collections, the entries of owners."""
    scope = getattr(request, "scope", None)
    if isinstance(scope, SiteScope) and scope.user.is_owner:
        _entry, site_tab = _find_current(request.path, SITE)
        return {"entries": [_show(entry.tabs[0], None, site_tab) | {"key": entry.key} for entry in SITE]}
    if not isinstance(scope, Scope):
        return {}
    collection = scope.collection
    work = [entry for entry in WORK if scope.may_judge and scope.role >= entry.role]
    entries = list_readable(scope) if scope.may_read_results else work
    current, current_tab = _find_current(request.path, (*entries, *work, GEAR), collection)
    # The counts of the entries, by key, and the stored alpha of Quality, in one statement.
    with connection.cursor() as cursor:
        cursor.execute(COUNTS if scope.may_read_results else CONFLICTS, {"collection": collection.pk, "many": MANY})
        *row, has_comparisons = cursor.fetchone() or (False,)
    keys = ("adjudicate", "data", "judging", "people", "train", "benchmark", "quality", "disabled_webhooks")
    counts: dict[str, float | None] = dict(zip(keys, row, strict=False))

    def is_shown(entry: Entry) -> bool:
        tab = entry.tabs[0]
        return (collection.lab or not tab.is_of_lab) and (has_comparisons or not tab.is_of_sets)

    work = [entry for entry in work if is_shown(entry)]
    at_work = scope.may_admin and current in work
    if scope.membership and not scope.may_admin:
        counts["replies"] = count_unread(scope.membership)
    menu = [
        _show(entry.tabs[0], collection)
        | {"key": entry.key, "title": entry.title, "current": entry is current, "count": counts.get(entry.key)}
        for entry in entries
        if is_shown(entry)
    ]
    # Admins who judge keep their menu on the left: there, the entries of the work are tabs.
    tabs: Iterable[Tab] = [entry.tabs[0] for entry in work] if at_work else (current.tabs if current else ())
    if current is LAB_ENTRY:
        tabs = [LAB_TAB, *(tab for group in lab_groups(scope) if current_tab in group[1] for tab in group[1])]
    shown_tabs = [_show(tab, collection, current_tab) for tab in tabs if collection.lab or not tab.is_of_lab]
    return {
        "collection": collection,
        "entries": menu,
        "tabs": shown_tabs if len(shown_tabs) > 1 else [],
        "gear": [_show(tab, collection, current_tab) for tab in GEAR.tabs] if scope.may_admin else [],
        "work": [_show(entry.tabs[0], collection, current_tab) for entry in work],
        "disabled_webhooks": counts.get("disabled_webhooks", 0) if scope.may_admin else 0,
        "judge": _show(WORK[0].tabs[0], collection) if scope.may_admin and scope.may_judge and not at_work else None,
    }


def list_readable(scope: Scope) -> list[Entry]:
    """Return the entries of an admin, or of a viewer: those of admins, with the tabs that viewers may open."""
    if scope.may_admin:
        return [*ADMIN, LAB_ENTRY]
    entries = []
    for entry in ADMIN:
        tabs = []
        for tab in entry.tabs:
            action = action_of(address_of(tab, scope.collection), "/", "GET")
            if action is not None and scope.may_on_site(action):
                tabs.append(tab)
        if tabs:
            entries.append(replace(entry, tabs=tuple(tabs)))
    return entries


def lab_groups(scope: Scope) -> list[tuple[Promise, list[Tab]]]:
    """Return the groups of the Lab with the pages that this admin may open."""
    # Aspects belong to a member's assessor, and owners need not be members.
    return [(title, [tab for tab in tabs if tab.url != "aspects" or scope.may_adjudicate]) for title, tabs in LAB]


def _find_current(
    path: str, entries: Iterable[Entry], collection: Collection | None = None
) -> tuple[Entry | None, Tab | None]:
    """Return the entry and the tab whose address is the longest prefix of a path; of equals, the first."""
    root = reverse("home") if collection is None else reverse("collection", args=[collection.name])
    matches = (
        (len(address), entry, tab)
        for entry in entries
        for tab in entry.tabs
        for address in (address_of(tab, collection), *(root + part for part in tab.also))
        # The first page's address is a prefix of all others.
        if path == address or (path.startswith(address) and address != root)
    )
    _length, entry, tab = max(matches, key=lambda match: match[0], default=(0, None, None))
    return entry, tab


def address_of(tab: Tab, collection: Collection | None) -> str:
    """Return the address of a tab; `collection` is None on pages of the site."""
    return reverse(tab.url, args=[] if tab.is_of_site or collection is None else [collection.name])


def _show(tab: Tab, collection: Collection | None, current: Tab | None = None) -> dict[str, Any]:
    return {"url": address_of(tab, collection), "title": tab.title, "current": tab is current}
