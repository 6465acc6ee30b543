"""Viewers: they read the results, are offered nothing that is refused, and do not learn who judged."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import lxml.html
import pytest
from django.test import Client

from annotation.access.permissions import collection_scope
from annotation.access.readable import action_of, keep_readable
from annotation.home.inbox.attention import read_open_work
from annotation.models import Assignment, Membership, Role, User
from annotation.people.accounts import members
from annotation.work.experiments import studies
from annotation.work.queue.skipped import skipped_by_all
from api.tokens import make_token
from corpus.access import Action
from corpus.models import Judgment
from tests.admin_site import judged_collection, people_at_work
from tests.factories import client_of, make_collection, make_item, make_member, make_pair
from tests.queue_scene import claim
from tests.site.test_permissions import World, routes

PLACES = ("a[@href]", "form", "*[@hx-get]", "*[@hx-post]")


def may_read(action: Action) -> bool:
    return action in ("results", "member", "public", "site")


def test_links_and_forms_that_a_reader_cannot_use_go_and_values_in_tables_stay() -> None:
    page = (
        '<p>5 &lt; 6 <a href="/c/birds/settings/">Set a limit</a> <a href="/c/birds/pairs/?state=open">9 pairs</a></p>'
        '<form method="post" action="/c/birds/settings/"><form>x</form><button>Save</button></form>'
        '<form method="get"><input name="q"/></form><form method="post"><button>Here</button></form>'
        '<table><tr><td><a class="badge" href="/c/birds/settings/">7</a></td></tr></table>'
        '<button hx-post="/c/birds/import/uploads/">Send</button>'
        '<div hx-get="/c/birds/settings/" hx-trigger="load">Soon</div><svg viewBox="0 0 1 1"><rect x="1"/></svg>'
        '<a href="#top">Top</a><a href="?chart=a" download>CSV</a><a href="https://elsewhere.example/">Out</a>'
    )
    assert keep_readable(page, may_read, "/c/birds/benchmark/") == (
        '<p>5 &lt; 6  <a href="/c/birds/pairs/?state=open">9 pairs</a></p>'
        '<form method="get"><input name="q"/></form>'
        '<table><tr><td><span class="badge">7</span></td></tr></table>'
        '<div hx-trigger="load">Soon</div><svg viewBox="0 0 1 1"><rect x="1"/></svg>'
        '<a href="#top">Top</a><a href="?chart=a" download>CSV</a><a href="https://elsewhere.example/">Out</a>'
    )
    assert keep_readable(page, may_read, "/c/birds/benchmark/", is_closed=True) == (
        "<p>5 &lt; 6  <span>9 pairs</span></p>"
        '<table><tr><td><span class="badge">7</span></td></tr></table>'
        '<div>Soon</div><svg viewBox="0 0 1 1"><rect x="1"/></svg>'
        '<a href="#top">Top</a><span>Out</span>'
    )


def offers(html: str, page: str) -> Iterator[tuple[str, str]]:
    """Each address that a page offers, with the method."""
    if not html.strip():
        return
    for element in lxml.html.fromstring(html).xpath(" | ".join(f"//{place}" for place in PLACES)):
        if element.tag == "form":
            yield element.get("action") or page, element.get("method", "get").upper()
        for name, method in (("href", "GET"), ("hx-get", "GET"), ("hx-post", "POST")):
            address = element.get(name, "")
            if address and not address.startswith("#") and not urlsplit(address).scheme:
                yield address, method


@pytest.mark.django_db
def test_no_page_offers_a_viewer_what_is_refused_or_names_who_judged() -> None:
    world = World()
    judgment = Judgment.objects.create(
        pair=world.pair, assessor=world.bystander.assessor, item=world.item, step="final", grade=1, comment="clear"
    )
    at = judgment.created_at
    ended = {"state": "done", "flagged": True, "flag_note": "unclear", "lease_until": at, "ended_at": at}
    Assignment.objects.create(item=world.item, membership=world.bystander, judgment=judgment, **ended)
    client, scope = world.client("viewer"), collection_scope(world.people["viewer"], "member", "birds")
    pages = {
        route.path: client.get(route.path)
        for route in routes(world)
        if route.action in ("results", "member") and route.path.startswith("/c/birds/")
    }
    assert len(pages) > 20 and {page.status_code for page in pages.values()} <= {200, 302, 404}
    refused = [
        (path, address, method)
        for path, page in pages.items()
        for address, method in offers(page.text, path)
        if (action := action_of(address, path, method)) is None or not scope.may_on_site(action)
    ]
    assert refused == []
    assert [path for path, page in pages.items() if "bystander" in page.text] == []
    assert "Person" in pages[f"/c/birds/pairs/{world.pair.pk}/"].text, "the judgment is shown, by a number"


@pytest.mark.django_db
def test_a_viewer_finds_pairs_by_state_but_not_by_who_judged_them() -> None:
    books = judged_collection()
    people_at_work(books)
    vera = make_member(books, "vera", Role.VIEWER)
    client = client_of(vera)
    everything = client.get("/c/books/pairs/").text.count('name="pair"')
    assert client.get("/c/books/pairs/?person=alice").text.count('name="pair"') == everything
    assert 0 < client.get("/c/books/pairs/?state=failed").text.count('name="pair"') < everything
    assert client.get("/c/books/agreement/two/?a=alice&b=bob").status_code == 404
    quality = client.get("/c/books/quality/").text
    assert "alice" not in quality and "Person 1" in quality
    assert "alice" in client_of(Membership.objects.get(user__username="charlie")).get("/c/books/quality/").text
    # The API says no more.
    token = make_token(vera.user, None, name="n", scopes=["read", "judge", "manage"], days=1)[1]
    stranger, headers = Client(), {"Authorization": f"Bearer {token}"}
    pairs = [
        stranger.get(f"/api/v1/collections/books/pairs{query}", headers=headers).json()["items"]
        for query in ("", "?person=alice")
    ]
    assert pairs[0] == pairs[1] != []
    report = str(stranger.get("/api/v1/collections/books/agreement", headers=headers).json())
    assert "Person 1" in report and "alice" not in report


@pytest.mark.django_db
def test_the_queue_and_its_numbers_ignore_viewers() -> None:
    books = make_collection("books", overlap=1)
    make_member(books, "vera", Role.VIEWER)
    alice = make_member(books, "alice")
    item = make_item(make_pair(books))
    assert read_open_work(books).people == 1
    assert list(studies.list_candidates(books)) == [alice]
    Assignment.objects.create(item=item, membership=alice, state="skipped", lease_until=item.created_at)
    assert list(skipped_by_all(books)) == [item], "nobody else can judge it"


@pytest.mark.django_db
def test_an_annotator_who_becomes_a_viewer_returns_the_pair_in_hand_and_has_a_menu_of_results_alone() -> None:
    books = make_collection("books")
    alice = make_member(books, "alice")
    make_item(make_pair(books))
    assert claim(alice) is not None
    members.change_role(membership=alice, role=Role.VIEWER)
    assert not Assignment.objects.filter(membership=alice, state="open").exists()
    client = client_of(alice)
    assert client.get("/c/books/judge/").status_code == 403
    entries = lxml.html.fromstring(client.get("/c/books/").text).xpath('//*[@id="rail"]//a/@href')
    rooms = ("", "pairs/", "campaigns/", "quality/", "exports/", "benchmark/")
    assert entries == [f"/c/books/{room}" for room in rooms]


@pytest.mark.django_db
def test_an_invitation_makes_a_viewer_who_begins_on_the_overview() -> None:
    books, owner = make_collection("books"), User.objects.create_user("olga", is_owner=True)
    invitation = members.invite(collection=books, role=Role.VIEWER, author=owner)
    client = Client()
    values = {"username": "vera", "password1": "a-long-word-9", "password2": "a-long-word-9"}
    answer = client.post(f"/invitations/{invitation.token}/", values)
    assert answer["Location"] == "/c/books/" and Membership.objects.get(user__username="vera").role == Role.VIEWER
    assert client.get("/c/books/").status_code == 200
    client.logout()
    signed_in = client.post("/accounts/login/", {"login": "vera", "password": "a-long-word-9"})
    assert signed_in["Location"] == "/c/books/"
