"""Ctrl-K's search: nothing that would be refused, things by their words, and what each result leads to."""

import re
from urllib.parse import urldefrag

import pytest
from django.test import Client

from annotation.access.permissions import Scope, SiteScope
from annotation.home.finding.results import FoundItem, choose
from annotation.models import Membership, Role, User
from annotation.models.snapshots import Snapshot
from config.finding import list_acts, list_pages, list_settings
from corpus.models import Collection
from corpus.search import full_text
from judges.models import Campaign
from tests.factories import client_of, make_collection, make_document, make_member, make_query, make_user
from tests.reading import flat

ROLES = {"viewer": Role.VIEWER, "annotator": Role.ANNOTATOR, "adjudicator": Role.ADJUDICATOR, "admin": Role.ADMIN}
WITHIN = {"HX-Request": "true"}


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def scope_of(member: Membership) -> Scope:
    return Scope(member.user, member.collection, member, Role(member.role))


def found(client: Client, typed: str, page: str = "/c/birds/find/") -> dict[str, list[str]]:
    """The titles of what is found, by heading."""
    groups = client.get(page, {"q": typed}).context["groups"]
    return {str(group.title): [str(result.title) for result in group.results] for group in groups}


def test_titles_that_begin_with_what_is_typed_come_first_and_notes_are_searched_after_titles() -> None:
    titles = [("My work", "1", "Judge"), ("Adjudicate", "2"), ("Judge", "3"), ("Judging", "4")]
    pages = [FoundItem(*title) for title in titles]
    assert [result.url for result in choose(pages, "JUDG")] == ["3", "4", "1"]
    assert [result.url for result in choose(pages, "ju ad")] == ["2"]
    assert choose(pages, "  ") == [] and choose(pages, "zebra") == []
    assert len(choose([FoundItem(f"Page {number}", "") for number in range(20)], "page")) == 6


@pytest.fixture
def birds() -> Collection:
    return make_collection("birds", title="Garden birds")


@pytest.mark.django_db
def test_documents_whose_title_is_typed_come_first(birds: Collection) -> None:
    for number in range(8):
        make_document(birds, "The del statement deletes.", title=f"Page {number}", external_id=f"a{number}")
    make_document(birds, "It removes names.", title="The del statement", external_id="z")
    full_text.index_documents(birds.pk, lambda done, total: None, lambda: False)
    admin = client_of(make_member(birds, "charlie", Role.ADMIN))
    assert found(admin, "del stat")["Documents"][0] == "The del statement"


@pytest.mark.django_db
@pytest.mark.parametrize("who", [*ROLES, "owner", "nobody"])
def test_every_page_action_and_setting_that_is_offered_opens(birds: Collection, who: str) -> None:
    if who in ROLES:
        member = make_member(birds, who, ROLES[who])
        user, scope = member.user, scope_of(member)
    elif who == "owner":
        user = make_user("owner", is_owner=True)
        scope = Scope(user, birds, None, Role.ADMIN)
    else:
        user = make_user("nobody")
    scopes = [SiteScope(user), scope] if who != "nobody" else [SiteScope(user)]
    client, offered = signed_in(user), []
    for one in scopes:
        offered += [*list_pages(one), *list_acts(one), *(list_settings(one) if isinstance(one, Scope) else [])]
    for result in offered:
        address, place = urldefrag(result.url)
        answer = client.get(address, follow=True)
        assert answer.status_code == 200, f"{result.title}: {address}"
        if place:
            assert re.search(f'id="{place}[_"0-9]', answer.text), f"{result.title}: {result.url} is no place"
    titles = {str(result.title) for result in offered}
    assert ("Settings" in titles, "Start a campaign" in titles) == ((who in ("admin", "owner"),) * 2)
    assert ("Adjudicate" in titles) == (who in ("adjudicator", "admin"))
    assert ("New collection" in titles, "Site accounts" in titles) == ((who == "owner",) * 2)


@pytest.mark.django_db
def test_an_admin_finds_what_is_in_the_collection_and_each_result_leads_to_it(birds: Collection) -> None:
    client = client_of(make_member(birds, "charlie", Role.ADMIN))
    alice = make_member(birds, "alice")
    make_query(birds, "Why do magpies sing?", external_id="q-7")
    make_document(birds, "A magpie sings at dawn.", title="The magpie", external_id="d-7#1")
    full_text.index_documents(birds.pk, lambda done, total: None, lambda: False)
    for number in (1, 2):
        Campaign.objects.create(collection=birds, policy="debate", panel=f"panel{number}")
        Snapshot.objects.create(collection=birds, format="prism")
    assert found(client, "magpi") == {"Queries": ["Why do magpies sing?"], "Documents": ["The magpie"]}
    assert found(client, "q-7")["Queries"] == ["Why do magpies sing?"]
    assert found(client, "d-7#1") == {"Documents": ["The magpie"]}
    assert found(client, "campaign 2")["Campaigns"] == ["Campaign 2"]
    assert found(client, "panel1") == {"Campaigns": ["Campaign 1"]}
    assert found(client, "export 1")["Exports"] == ["Export 1"] and len(found(client, "prism")["Exports"]) == 2
    assert found(client, "ALIC")["People"] == ["alice"]
    assert found(client, "daily budget")["Settings"] == ["Daily budget (USD)"]
    assert found(client, "GARDEN")["Collections"] == ["Garden birds"]
    assert found(client, "zebra") == found(client, "  ") == found(client, "'") == found(client, "%") == {}
    page = client.get("/c/birds/find/", {"q": "magpie"}).text
    assert "/c/birds/pairs/?q=d-7%231" in page
    assert f"/c/birds/people/{alice.pk}/" in client.get("/c/birds/find/", {"q": "alice"}).text


@pytest.mark.django_db
def test_others_find_no_text_no_people_and_no_collection_of_others(birds: Collection) -> None:
    stones = make_collection("stones", title="Garden stones")
    make_query(birds, "Why do magpies sing?")
    make_member(birds, "charlie", Role.ADMIN)
    Campaign.objects.create(collection=birds, policy="debate", panel="main")
    senior = make_member(birds, "senior", Role.ADJUDICATOR)
    client = client_of(senior)
    assert [found(client, typed) for typed in ("magpies", "charlie", "campaign 1")] == [{}, {}, {}]
    assert found(client, "garden") == {"Collections": ["Garden birds"]}
    assert found(client, "garden", "/find/") == {"Collections": ["Garden birds"]}
    owner = signed_in(make_user("owner", is_owner=True))
    assert found(owner, "garden", "/find/") == {"Collections": ["Garden birds", "Garden stones"]}
    assert found(owner, "senior", "/find/") == {"People": ["senior"]}
    assert client.get(f"/c/{stones.name}/find/?q=a").status_code == 404
    Membership.objects.filter(pk=senior.pk).update(is_active=False)
    assert found(client, "garden", "/find/") == {}


@pytest.mark.django_db
def test_the_empty_dialog_says_what_can_be_searched_and_texts_are_escaped(birds: Collection) -> None:
    client = client_of(make_member(birds, "charlie", Role.ADMIN))
    make_query(birds, "<script>alert(1)</script> magpies?")
    empty = client.get("/c/birds/find/", headers=WITHIN)
    assert "Search pages, actions, settings, collections" in flat(empty.text) and 'role="option"' not in empty.text
    nothing = client.get("/c/birds/find/", {"q": "<b>zebra"}, headers=WITHIN)
    assert "Nothing found for “&lt;b&gt;zebra”. Search pages" in " ".join(nothing.text.split())
    one = client.get("/c/birds/find/", {"q": "magpies"}, headers=WITHIN).text
    assert "<script>" not in one and one.count('role="option"') == 1 and "1 result" in one
    page = client.get("/c/birds/find/", {"q": "magpies"}).text
    assert 'role="option"' not in page and "/pairs/?q=" in page, "without scripts they are links of a page"


@pytest.mark.django_db
def test_the_judging_page_has_neither_the_search_nor_its_files(birds: Collection) -> None:
    client = client_of(make_member(birds, "alice"))
    for address, has_it in (
        ("/c/birds/judge/", False),
        ("/c/birds/judge/query/", False),
        ("/c/birds/judge/history/", True),
    ):
        page = client.get(address, follow=True).text
        assert [part in page for part in ('id="find"', "js/find", "css/find", "js/zone")] == [has_it] * 4, address
    assert 'id="find"' not in Client().get("/accounts/login/").text
