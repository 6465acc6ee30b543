"""Ctrl-K: one search of pages, actions, settings, collections and what is in a collection, each as far as one may.

What a page or an action needs is read from its view, so that nothing is offered that would be refused.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from actions.options import text_of
from annotation.access.permissions import Scope, SiteScope, action
from annotation.home.finding.results import FoundItem, Group, choose
from annotation.home.finding.selectors import find_accounts, find_collections, find_in_collection
from annotation.work.settings.views import WORK_OPTIONS
from config.navigation import ADMIN, GEAR, LAB_ENTRY, SITE, WORK, address_of
from corpus.access import Action
from corpus.collections.options import AMOUNTS, SettingsOptions

LONGEST = 200  # Letters of what is typed.


@dataclass(frozen=True)
class Act:
    """Something to do: the page where it is done, the place there, and the address that does it."""

    title: Promise
    page: str
    does: str
    place: str = ""


ACTS = (
    Act(gettext_lazy("Import files"), "import", "create_upload"),
    Act(gettext_lazy("Start a campaign"), "campaigns", "start_campaign"),
    Act(gettext_lazy("Draw comparisons (A or B)"), "comparisons", "comparisons", "draw-h"),
    Act(gettext_lazy("Add a model"), "models", "add_model", "add-h"),
    Act(gettext_lazy("Test a model"), "models", "test_model"),
    Act(gettext_lazy("Invite people"), "members", "invite_members", "invite"),
    Act(gettext_lazy("Edit guidelines"), "guidelines_editor", "guidelines_editor"),
    Act(gettext_lazy("Edit the instruction"), "instruction", "instruction"),
    Act(gettext_lazy("Create an export"), "exports", "make_export"),
    Act(gettext_lazy("Share a page"), "share_links", "share_links"),
    Act(gettext_lazy("Start training"), "training", "start_training", "start"),
    Act(gettext_lazy("Upload runs"), "runs", "upload_runs"),
    Act(gettext_lazy("Fill holes"), "hole_fillings", "hole_fillings"),
    Act(gettext_lazy("Compare a new run with the old one"), "gates", "decide_gate", "new"),
)
SITE_ACTS = (
    Act(gettext_lazy("New collection"), "new_collection", "new_collection"),
    Act(gettext_lazy("Back up now"), "backups", "make_backup"),
    Act(gettext_lazy("Change password"), "account_change_password", "account_change_password"),
    Act(gettext_lazy("Create an access token"), "tokens", "tokens"),
    Act(gettext_lazy("Change language, theme or time zone"), "account", "display", "look"),
)
# Pages of everybody that are in no menu of navigation.
OWN_PAGES: tuple[tuple[str, Promise], ...] = (
    ("account", gettext_lazy("Account")),
    ("mfa_index", gettext_lazy("Two-factor authentication")),
    ("tokens", gettext_lazy("Access tokens")),
    ("glossary", gettext_lazy("Glossary")),
)


@action("member", "GET")
def find(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Find from a page of a collection: as HTMX the list, else a page that needs no script."""
    return _answer(request, scope)


@action("site", "GET")
def find_on_site(request: HttpRequest, scope: SiteScope) -> HttpResponse:
    """Find from a page outside collections."""
    return _answer(request, scope)


def _answer(request: HttpRequest, scope: Scope | SiteScope) -> HttpResponse:
    typed = " ".join(request.GET.get("q", "").split())[:LONGEST]
    in_dialog = bool(request.headers.get("HX-Request"))
    groups = [group for group in find_groups(scope, typed) if group.results] if typed else []
    context = {
        "scope": scope,
        "typed": typed,
        "groups": groups,
        "count": sum(len(group.results) for group in groups),
        "in_dialog": in_dialog,
        "kinds": kinds(scope),
    }
    return render(request, "find/_results.html" if in_dialog else "find/page.html", context)


def find_groups(scope: Scope | SiteScope, typed: str) -> list[Group]:
    """Return what the person may open that matches what they typed, by kind."""
    groups = [
        Group("actions", _("Actions"), choose(list_acts(scope), typed)),
        Group("pages", _("Go to"), choose(list_pages(scope), typed)),
        find_collections(scope.user, typed),
    ]
    if isinstance(scope, Scope):
        groups += [
            *find_in_collection(scope, typed),
            Group("settings", _("Settings"), choose(list_settings(scope), typed)),
        ]
    elif scope.user.is_owner:
        groups.append(find_accounts(typed))
    return groups


def kinds(scope: Scope | SiteScope) -> str:
    """Return what this person can search, for the empty dialog."""
    if isinstance(scope, Scope) and scope.may_admin:
        return _("Search pages, actions, settings, collections, campaigns, exports, people, queries and documents.")
    if isinstance(scope, Scope) and scope.may_read_results:
        return _("Search pages, collections, campaigns, exports, queries and documents.")
    if scope.user.is_owner:
        return _("Search pages, actions, collections and people. Inside a collection, also all that it contains.")
    return _("Search pages, actions and collections.")


def list_pages(scope: Scope | SiteScope) -> list[FoundItem]:
    """Return the pages that the person may open: those of the collection's menu, then those of the site."""
    site = [
        FoundItem(entry.title, address_of(entry.tabs[0], None), _("Site")) for entry in SITE if _may(scope, entry.key)
    ]
    pages = site + [FoundItem(title, reverse(name)) for name, title in OWN_PAGES]
    if not isinstance(scope, Scope):
        return pages
    collection = scope.collection
    entries = [*ADMIN, *([LAB_ENTRY] if collection.lab else []), GEAR] if scope.may_read_results else []
    entries += [entry for entry in WORK if scope.may_judge and scope.role >= entry.role]
    # A page that is in the menu twice is listed where it is first.
    first = {tab.url: (tab, entry) for entry in reversed(entries) for tab in reversed(entry.tabs)}
    own = [
        FoundItem(tab.title, address_of(tab, collection), "" if str(tab.title) == str(entry.title) else entry.title)
        for tab, entry in reversed(first.values())
        if _may(scope, tab.url) and (collection.lab or not tab.is_of_lab)
    ]
    return own + pages


def list_acts(scope: Scope | SiteScope) -> list[FoundItem]:
    """Return the actions that the person may do, with the pages where they are done."""
    collection = [scope.collection.name] if isinstance(scope, Scope) else []
    acts: Iterable[tuple[Act, list[str]]] = [(act, []) for act in SITE_ACTS]
    if collection:
        acts = [*((act, collection) for act in ACTS), *acts]
    return [
        FoundItem(act.title, reverse(act.page, args=args) + (f"#{act.place}" if act.place else ""))
        for act, args in acts
        if _may(scope, act.page) and _may(scope, act.does)
    ]


def list_settings(scope: Scope) -> list[FoundItem]:
    """Return the collection's settings, each with its place on the page; nothing where the page is closed."""
    if not _may(scope, "settings"):
        return []
    page = reverse("settings", args=[scope.collection.name])
    return [FoundItem(text_of(SettingsOptions, name).title, f"{page}#id_{name}") for name in (*WORK_OPTIONS, *AMOUNTS)]


def _may(scope: Scope | SiteScope, name: str) -> bool:
    """Return whether the person may open the address of this name; False where its view names no action."""
    needed = _list_actions().get(name)
    if needed in ("public", "site"):
        return True
    if needed == "own-site":
        return scope.user.is_owner
    return needed is not None and isinstance(scope, Scope) and scope.may(needed)


@cache
def _list_actions() -> dict[str, Action | None]:
    """Return what each address of the site needs, by its name."""

    def walk(patterns: Iterable[URLPattern | URLResolver]) -> Iterator[URLPattern]:
        for pattern in patterns:
            if isinstance(pattern, URLPattern):
                yield pattern
            elif not pattern.namespace:
                yield from walk(pattern.url_patterns)

    return {
        pattern.name: getattr(pattern.callback, "action", None)
        for pattern in walk(get_resolver().url_patterns)
        if pattern.name
    }
