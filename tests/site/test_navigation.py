"""The menu: few entries and tabs, the Lab only where it is on, one name for each page, each page under one entry."""

import html
import re
from itertools import chain
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client, RequestFactory
from django.urls import resolve, reverse

from annotation.access.permissions import Scope
from annotation.models import Role
from config import navigation
from config.navigation import ADMIN, GEAR, LAB, LAB_TAB, SITE, WORK, Tab, address_of
from corpus.models import Collection
from tests.factories import client_of, make_collection, make_member, make_user
from tests.site.test_links import follow
from tests.site.test_permissions import World, routes
from tests.stages import first_slow

pytestmark = pytest.mark.django_db
LAB_TABS = [tab for _title, tabs in LAB for tab in tabs]
ENTRIES = ["Overview", "Data", "Judging", "People", "Quality", "Train & export", "Benchmark"]


def entries_for(role: Role, collection: Collection) -> list[str]:
    client = client_of(make_member(collection, f"a-{role}", role))
    page = client.get(reverse("judge_history", args=[collection.name]))
    return [str(entry["title"]) for entry in page.context["navigation"]["entries"]]


def test_each_role_has_its_entries_and_the_lab_adds_its_own() -> None:
    without, with_lab = make_collection("birds"), make_collection("stones", lab=True)
    assert not without.lab, "new collections begin without it"
    for collection in (without, with_lab):
        assert entries_for(Role.ANNOTATOR, collection) == ["Judge", "My work", "Replies"]
    assert entries_for(Role.ADJUDICATOR, without) == ["Judge", "Adjudicate", "My work", "Replies"]
    assert entries_for(Role.ADJUDICATOR, with_lab) == ["Judge", "Adjudicate", "Aspects", "My work", "Replies"]
    assert entries_for(Role.ADMIN, without) == ENTRIES
    assert entries_for(Role.ADMIN, with_lab) == [*ENTRIES, "Lab"]


def test_an_admin_without_the_lab_has_seven_entries_and_twenty_tabs() -> None:
    """Counted as shown, on the first page of each entry, with the menu of settings."""
    collection = make_collection("birds")
    client = client_of(make_member(collection, "ada", Role.ADMIN))
    first = client.get("/c/birds/").context["navigation"]
    tabs = [client.get(entry["url"]).context["navigation"]["tabs"] for entry in first["entries"]]
    assert [len(row) for row in tabs] == [0, 2, 3, 3, 2, 2, 4]  # The Overview has no second page, so no row of tabs.
    assert (len(tabs), sum(len(row) or 1 for row in tabs) + len(first["gear"])) == (7, 20)
    page = client.get(reverse("judge_history", args=[collection.name]))
    work = [reverse(name, args=["birds"]) for name in ("judge", "adjudicate", "judge_history", "replies")]
    assert [tab["url"] for tab in page.context["navigation"]["tabs"]] == work
    elsewhere = client.get(reverse("members", args=[collection.name])).context["navigation"]
    assert (elsewhere["judge"]["url"], len(elsewhere["tabs"])) == (reverse("judge", args=["birds"]), 3)


def test_an_admin_switches_the_lab_on_in_the_settings_and_finds_its_pages() -> None:
    birds = make_collection("birds")
    client = client_of(make_member(birds, "ada", Role.ADMIN))
    assert "The Lab is off" in client.get("/c/birds/lab/").text
    form = client.get("/c/birds/settings/").context["form"]
    values = {name: value for name in form.fields if (value := form[name].value()) is not None}
    assert client.post("/c/birds/settings/", {**values, "lab": "True"}).status_code == 302
    page = client.get("/c/birds/lab/")
    assert "The Lab is off" not in page.text and page.context["navigation"]["entries"][-1]["title"] == "Lab"
    assert all(address_of(tab, birds) in page.text for tab in LAB_TABS if not tab.is_of_site)


def test_pages_of_the_lab_show_their_group_as_tabs() -> None:
    collection = make_collection("birds", lab=True)
    client = client_of(make_member(collection, "ada", Role.ADMIN))
    for _title, tabs in LAB:
        for tab in tabs:
            if not tab.is_of_site:
                shown = client.get(address_of(tab, collection)).context["navigation"]["tabs"]
                assert [row["title"] for row in shown] == ["Lab", *(other.title for other in tabs)]
                assert [row["title"] for row in shown if row["current"]] == [tab.title]


def test_every_page_of_a_collection_stands_under_an_entry() -> None:
    tabs = [tab.url for tab in chain(*(entry.tabs for entry in (*ADMIN, GEAR)), LAB_TABS)]
    assert len(tabs) == len(set(tabs)), "each under one"
    world = World()
    scope = Scope(make_user("site-owner"), world.collection, None, Role.ADMIN)
    counts = {}
    for path in (
        route.path for route in routes(world) if route.path.startswith("/c/birds/") and route.action == "admin"
    ):
        request = RequestFactory().get(path)
        request.scope = scope
        shown = navigation.build_navigation(request)
        counts[path] = sum(tab["current"] for tab in (*shown["entries"], *shown["gear"]))
    assert {path for path, count in counts.items() if count != 1} == set(), "config/navigation.py names their tabs"


def text_of(markup: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", markup)).split())


def names_of(client: Client, address: str) -> tuple[str, str]:
    """The heading of a page, and its title without the collection's or the site's name."""
    page = client.get(address)
    assert page.status_code == 200, address
    text = page.content.decode()
    heading, title = (re.search(rf"<{tag}[^>]*>(.*?)</{tag}>", text, re.DOTALL) for tag in ("h1", "title"))
    assert heading and title
    return text_of(heading[1]), text_of(title[1]).partition(" · ")[0]


@pytest.mark.parametrize("lab", [True, False])
def test_every_tab_answers_and_has_the_name_of_its_heading_and_its_title(lab: bool) -> None:
    """With the Lab off, addresses of its pages still answer."""
    collection = make_collection("birds", lab=lab)
    client = client_of(make_member(collection, make_user("olga", is_owner=True).username, Role.ADMIN))
    tabs: list[Tab] = [*chain(*(entry.tabs for entry in (*ADMIN, GEAR, *SITE, WORK[-1]))), LAB_TAB, *LAB_TABS]
    names = {tab.url: ({*names_of(client, address_of(tab, collection))}, {str(tab.title)}) for tab in tabs}
    assert {url: pair for url, pair in names.items() if pair[0] != pair[1]} == {}


def test_breadcrumbs_call_a_page_by_the_name_of_its_tab() -> None:
    tabs = chain(*(entry.tabs for entry in (*ADMIN, GEAR, *SITE, *WORK)), [LAB_TAB, *LAB_TABS])
    titles = {tab.url: str(tab.title) for tab in tabs}
    named = []
    for path in sorted(Path(settings.BASE_DIR, "templates").rglob("*.html")):
        for crumbs in re.findall(r'class="crumbs".*?</(?:nav|p)>', path.read_text(), re.DOTALL):
            links = re.findall(r"""<a[^>]*?\{% url '(\w+)'[^>]*>\s*\{% translate ["'](.*?)["'] %\}""", crumbs)
            named += [(str(path), url, title) for url, title in links if url in titles]
    assert len(named) > 50
    assert [row for row in named if row[2] != titles[row[1]]] == []


def names_of_lab(world: World) -> set[str]:
    """The names of all addresses that belong to the Lab, as the menu has it."""
    entries = (*ADMIN, navigation.LAB_ENTRY, GEAR)
    tabs = {route.name: navigation._find_current(route.path, entries, world.collection)[1] for route in routes(world)}
    return {name for name, tab in tabs.items() if tab is LAB_TAB or tab in LAB_TABS}


@pytest.mark.parametrize("who", first_slow(["admin", "adjudicator", "owner"]))
def test_links_lead_to_the_lab_only_where_it_is_on(who: str) -> None:
    """Followed from every page that can be reached, on a collection with one of everything."""
    world = World()
    _broken, seen = follow(world.client(who), "/c/birds/")
    pages = seen & names_of_lab(world)
    assert pages >= ({"reference_study"} if who == "adjudicator" else {tab.url for tab in LAB_TABS} - {"aspects"})
    assert ("aspects" in pages) == (who != "owner")  # Only members weigh aspects.
    Collection.objects.update(lab=False)
    _broken, seen = follow(world.client(who), "/c/birds/")
    assert seen & names_of_lab(world) == set()


def test_the_owner_has_a_menu_on_the_pages_of_the_site_and_nobody_else() -> None:
    admin = client_of(make_member(make_collection("birds"), "ada", Role.ADMIN))
    owner = Client()
    owner.force_login(make_user("olga", is_owner=True))
    titles = ["Collections", "Site accounts", "Search endpoints", "Backups", "Audit log"]
    for address in ("/", "/people/", "/search-endpoints/", "/backups/", "/audit-log/"):
        entries = owner.get(address).context["navigation"]["entries"]
        assert [str(entry["title"]) for entry in entries] == titles
        assert [entry["url"] for entry in entries if entry["current"]] == [address]
        assert resolve(address).func.action in ("site", "own-site")  # type: ignore[attr-defined]
    assert not admin.get("/").context["navigation"]
