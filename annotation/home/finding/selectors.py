"""What a person may find by its text: collections, and for admins what is in a collection. One statement a kind."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlencode

from django.db.models import Q
from django.db.models.functions import Left
from django.urls import reverse
from django.utils.translation import gettext as _

from annotation.access.permissions import Scope
from annotation.home.finding.results import MOST, FoundItem, Group
from annotation.models import Membership, User
from annotation.models.snapshots import Snapshot
from corpus.models import Collection, Query
from corpus.search import full_text
from judges.models import Campaign
from store.sql import fetch_rows, read_sql

SHOWN_LETTERS = 120
SAMPLE = 2_000  # Documents that are read for a common word.
INDEXED = 20_000  # The most documents of a rarer word.
DOCUMENTS = read_sql(__file__, "find_documents")


def find_collections(user: User, typed: str) -> Group:
    """Return the collections of a person, for owners any, whose title or name contains a text."""
    rows = Collection.objects.filter(Q(title__icontains=typed) | Q(name__icontains=typed)).order_by("name")
    if not user.is_owner:
        rows = rows.filter(memberships__user=user, memberships__is_active=True)
    results = [
        FoundItem(row.title or row.name, reverse("collection", args=[row.name]), row.name if row.title else "")
        for row in rows.only("name", "title")[:MOST]
    ]
    return Group("collections", _("Collections"), results)


def find_accounts(typed: str) -> Group:
    """Return accounts of the site, for owners."""
    names = User.objects.filter(username__icontains=typed).order_by("username").values_list("username", flat=True)
    page = reverse("site_accounts")
    return Group(
        "people", _("People"), [FoundItem(name, f"{page}?{urlencode({'search': name})}") for name in names[:MOST]]
    )


def find_in_collection(scope: Scope, typed: str) -> list[Group]:
    """Return what admins and viewers find in their collection; nothing for others, who cannot open the pages it is on.

    Viewers find no people.
    """
    if not scope.may_read_results:
        return []
    return [
        _find_campaigns(scope, typed), _find_exports(scope, typed),
        *([_find_people(scope, typed)] if scope.may_admin else []),
        _find_queries(scope, typed), _find_documents(scope, typed),
    ]  # fmt: skip


def _find_campaigns(scope: Scope, typed: str) -> Group:
    page, name = reverse("collection", args=[scope.collection.name]), _("Campaign")
    campaigns = Campaign.objects.filter(collection=scope.collection, kind=Campaign.Kind.JUDGING).order_by("-number")
    return Group(
        "campaigns",
        _("Campaigns"),
        [
            FoundItem(f"{name} {row.number}", f"{page}?campaign={row.number}", f"{policy}, {row.panel}, {state}")
            for row in campaigns.only("number", "policy", "panel", "state")
            if _matches(f"{name} {row.number} {(policy := row.get_policy_display())} {row.panel} "
                          f"{(state := row.get_state_display())}", typed)
        ][:MOST],
    )  # fmt: skip


def _find_exports(scope: Scope, typed: str) -> Group:
    page, name = reverse("exports", args=[scope.collection.name]), _("Export")
    snapshots = Snapshot.objects.filter(collection=scope.collection).order_by("-number")
    return Group(
        "exports",
        _("Exports"),
        [
            FoundItem(f"{name} {row.number}", f"{page}#export-{row.number}", row.format)
            for row in snapshots.only("number", "format")
            if _matches(f"{name} {row.number} {row.format}", typed)
        ][:MOST],
    )


def _matches(text: str, typed: str) -> bool:
    """Return whether a text has every typed word; numbers only as a whole."""
    words = text.casefold()
    return all(word in (words.split() if word.isdecimal() else words) for word in typed.casefold().split())


def _find_people(scope: Scope, typed: str) -> Group:
    members = Membership.objects.filter(collection=scope.collection, user__username__icontains=typed)
    return Group(
        "people",
        _("People"),
        [
            FoundItem(
                row.user.username, reverse("member", args=[scope.collection.name, row.pk]), row.get_role_display()
            )
            for row in members.select_related("user").order_by("user__username")[:MOST]
        ],
    )


def _find_queries(scope: Scope, typed: str) -> Group:
    rows = Query.objects.filter(
        Q(external_id__istartswith=typed) | Q(text__icontains=typed), collection=scope.collection, is_current=True
    ).values_list("external_id", Left("text", SHOWN_LETTERS))
    return Group("queries", _("Queries"), _list_texts(scope, rows[:MOST]))


def _find_documents(scope: Scope, typed: str) -> Group:
    # Only the last word may be incomplete.
    words, sign, last = full_text.write_search(typed).rpartition(" & ")
    search = words.replace(":*", "") + sign + last
    values = {"collection": scope.collection.pk, "typed": typed, "search": search}
    rows = fetch_rows(DOCUMENTS, most=MOST, letters=SHOWN_LETTERS, sample=SAMPLE, indexed=INDEXED, **values)
    return Group("documents", _("Documents"), _list_texts(scope, rows))


def _list_texts(scope: Scope, rows: Iterable[tuple[Any, ...]]) -> list[FoundItem]:
    """Return a result for each (id, text), which leads to its pairs."""
    page = reverse("pairs", args=[scope.collection.name])
    return [FoundItem(text, f"{page}?{urlencode({'q': key})}", key) for key, text in rows]
