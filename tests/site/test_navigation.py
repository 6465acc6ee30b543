"""The menu: at most seven entries, no tab under two of them, and every page of a collection under exactly one."""

import pytest
from django.test import Client, RequestFactory
from django.urls import reverse

from annotation.access.permissions import Scope
from annotation.models import Role
from config import navigation
from corpus.models import Collection
from tests.factories import make_collection, make_member, make_user
from tests.site.test_permissions import World, routes

pytestmark = pytest.mark.django_db


def entries_for(role: Role, collection: Collection) -> list[str]:
    client = Client()
    client.force_login(make_member(collection, f"a-{role}", role).user)
    page = client.get(reverse("judge_history", args=[collection.name]))
    return [str(entry["title"]) for entry in page.context["navigation"]["entries"]]


def test_each_role_has_its_entries_and_nobody_more_than_seven():
    collection = make_collection("birds")
    assert entries_for(Role.ANNOTATOR, collection) == ["Judge", "My work"]
    assert entries_for(Role.ADJUDICATOR, collection) == ["Judge", "Adjudicate", "Aspects", "My work"]
    assert entries_for(Role.ADMIN, collection) == [
        "Overview", "Data", "Judging", "People", "Quality", "Train & export", "Benchmark",
    ]  # fmt: skip


def test_a_tab_stands_under_one_entry():
    tabs = [tab.url for entry in (*navigation.ADMIN, *navigation.WORK, navigation.GEAR) for tab in entry.tabs]
    assert len(tabs) == len(set(tabs))


def test_every_page_of_a_collection_stands_under_an_entry():
    world = World()
    scope = Scope(make_user("site-owner"), world.collection, None, Role.ADMIN)
    strays = set()
    for route in routes(world):
        if not route.path.startswith(f"/c/{world.collection.name}/") or route.action != "admin":
            continue
        request = RequestFactory().get(route.path)
        request.scope = scope
        shown = navigation.build_navigation(request)
        if sum(entry["current"] for entry in shown["entries"]) + sum(tab["current"] for tab in shown["gear"]) != 1:
            strays.add(route.path)
    assert strays == set(), "config/navigation.py names the tab they belong to"


def test_an_admin_who_judges_has_the_pages_of_the_work_as_tabs():
    collection = make_collection("birds")
    client = Client()
    client.force_login(make_member(collection, "ada", Role.ADMIN).user)
    page = client.get(reverse("judge_history", args=[collection.name]))
    assert [tab["url"] for tab in page.context["navigation"]["tabs"]] == [
        reverse(name, args=["birds"]) for name in ("judge", "adjudicate", "aspects", "judge_history")
    ]
    elsewhere = client.get(reverse("members", args=[collection.name])).context["navigation"]
    assert (elsewhere["judge"]["url"], len(elsewhere["tabs"])) == (reverse("judge", args=["birds"]), 3)
