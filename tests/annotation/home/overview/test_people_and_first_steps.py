"""What people and providers do stands on the Overview; a new collection's first steps, and the offline trial."""

import time

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from annotation.home.campaigns import selectors
from annotation.models import Assignment, AuditEntry, Membership, Role
from annotation.models.imports import FileImport
from annotation.models.quality_control import ConsentText
from corpus.models import Collection, Item
from judges.engine.account_states import AccountState
from judges.models import Campaign, JudgeVersion
from judges.models.costs import Ledger
from tests.evidence import make_campaign, make_judge, make_judgment
from tests.factories import client_of, make_collection, make_item, make_member, make_pair, make_query, make_user
from tests.judging_scene import make_scene

pytestmark = pytest.mark.django_db


@pytest.fixture
def books() -> Collection:
    return make_collection("books")


@pytest.fixture
def alice(books: Collection) -> Membership:
    return make_member(books, "alice")


@pytest.fixture
def charlie(books: Collection) -> Client:
    return client_of(make_member(books, "charlie", Role.ADMIN))


def close(member: Membership, why: str) -> None:
    books = member.collection
    if why == "consent":
        ConsentText.objects.create(collection=books, version=1, text="We keep your answers.")
        Collection.objects.filter(pk=books.pk).update(consent_version=1)
    elif why == "paused":
        Membership.objects.filter(pk=member.pk).update(paused_at=timezone.now())
    else:
        Collection.objects.filter(pk=books.pk).update(qualification=True)
        failed = timezone.now() if why == "failed" else None
        Membership.objects.filter(pk=member.pk).update(failed_at=failed)


FIRST = {"consent": "I agree", "failed": "Test not passed", "paused": "Your access is paused",
         "untested": "The test is not ready"}  # fmt: skip


@pytest.mark.parametrize(("why", "words"), FIRST.items())
def test_whole_queries_say_what_comes_first(books: Collection, alice: Membership, why: str, words: str) -> None:
    make_scene(books, 2)
    close(alice, why)
    client = client_of(alice)
    for ask, address in ((client.get, "/c/books/judge/query/"), (client.post, "/c/books/judge/query/next/")):
        answer = ask(address, follow=True)
        assert answer.status_code == 200 and words in answer.text and "Start a query" not in answer.text
    home = client.get("/c/books/").text
    assert "pairs to judge" not in home and "pair to judge" not in home


def test_the_answers_of_a_failed_test_have_no_undo(books: Collection, alice: Membership) -> None:
    make_scene(books, 1)
    client = client_of(alice)
    client.post("/c/books/judge/next/", follow=True)
    task = Assignment.objects.get()
    sent = {"item": task.public_id, "token": task.token, "grade": 1}
    assert client.post("/c/books/judge/submit/", sent).status_code in (200, 303)
    assert 'action="/c/books/judge/undo/"' in client.get("/c/books/judge/history/").text
    close(alice, "failed")
    for place in ("", f"{task.public_id}/"):
        page = client.get(f"/c/books/judge/history/{place}")
        assert page.status_code == 200
        assert 'class="button small quiet"' not in page.text and 'data-key="u"' not in page.text


def test_a_median_below_two_seconds_stands_on_the_overview(books, alice, charlie):
    for _ in range(10):
        item = make_item(make_pair(books), state="settled", taken=1, done=1)
        judgment = make_judgment(item.pair, alice.assessor, 1, item=item, guideline=0, milliseconds=500)
        ended = {"state": "done", "lease_until": timezone.now(), "ended_at": timezone.now()}
        Assignment.objects.create(item=item, membership=alice, judgment=judgment, **ended)
    close(alice, "failed")
    page = charlie.get("/c/books/").text
    assert "alice: takes 0.5 s" in page and "alice: did not pass" in page


def test_a_provider_that_does_not_answer_stands_on_the_overview_with_since_when(books, charlie, monkeypatch):
    judge = JudgeVersion.objects.create(name="far", provider="openai", base_url="http://127.0.0.1:9", model="far")
    make_campaign(books, [judge], state="running")
    for ago, shown in ((20, True), (1, False), (0, False)):
        state = AccountState("openai http://127.0.0.1:9", 0, 3, 0, 0, False, time.time() - ago if ago else 0)
        monkeypatch.setattr(
            selectors, "read_account_states", lambda accounts, state=state: dict.fromkeys(accounts, state)
        )
        page = " ".join(charlie.get("/c/books/").text.split())
        assert ("OpenAI (127.0.0.1:9) has not answered since" in page) == shown, ago


def test_a_judge_without_a_vote_stands_on_the_overview(books: Collection, charlie: Client) -> None:
    judge = JudgeVersion.objects.create(name="w3", provider="openai", model="w3")
    campaign = make_campaign(books, [judge], state="running")
    values = {"campaign": campaign, "shard": 0, "day": timezone.now(), "judge": judge, "role": "vote", "round": 0}
    row = Ledger.objects.create(**values, outcome="refused", calls=7)
    for calls, outcome, shown in ((7, "refused", True), (4, "refused", False), (7, "labelled", False)):
        Ledger.objects.filter(pk=row.pk).update(calls=calls, outcome=outcome)
        page = " ".join(charlie.get("/c/books/").text.split())
        assert ("w3: 7 calls, 0 votes" in page) == shown and "w3 has not" not in page


@pytest.fixture
def olga() -> Client:
    client = Client()
    client.force_login(make_user("olga", is_owner=True))
    return client


def page(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200
    return response.content.decode()


def begin(client: Client, title: str, name: str = "") -> str:
    values = {"title": title, "name": name, "grades": "1"}
    return str(client.post("/collections/new/", values)["Location"])


def test_the_name_is_made_from_the_title_and_numbered_where_it_is_taken(olga: Client) -> None:
    for title, name in (("Birds of Äland", "birds-of-aland"), ("鸟类", "collection"), ("--", "collection-2")):
        assert begin(olga, title) == f"/c/{name}/import/"
    assert begin(olga, "Birds of Äland") == "/c/birds-of-aland-2/import/"
    assert begin(olga, "鸟类", "own") == "/c/own/import/"
    assert olga.post("/collections/new/", {"title": "", "grades": "1"}).status_code == 422


def test_title_and_files_are_one_form_whose_maker_may_judge(olga: Client) -> None:
    file = SimpleUploadedFile("rows.csv", b"query,document\nWhy?,Because.\n")
    response = olga.post("/collections/new/", {"title": "Birds", "grades": "1", "files": [file]})
    row = FileImport.objects.get()
    assert response["Location"] == f"/c/birds/import/{row.number}/"
    assert [file["name"] for file in row.files] == ["rows.csv"]
    assert Membership.objects.get(collection__name="birds").role == Role.ADMIN
    empty = SimpleUploadedFile("empty.csv", b"")
    refused = olga.post("/collections/new/", {"title": "Fish", "grades": "1", "files": [empty]}, follow=True)
    assert Collection.objects.filter(name="fish").exists() and refused.status_code == 200
    from_log = olga.post("/collections/new/", {"title": "Shop", "grades": "1", "log": "1"})
    assert from_log["Location"] == "/c/shop/import/query-log/"


def test_the_offline_trial_is_said_to_be_weak_never_primary_and_gone_once_there_is_a_model(olga: Client) -> None:
    collection = make_collection("birds")
    make_pair(collection)
    shown = page(client_of(make_member(collection, "charlie", Role.ADMIN)), "/c/birds/")
    assert "An owner of this site" in shown and "Add a model" not in shown, "an admin may add none"
    for has_model in (False, True):
        shown = page(olga, "/c/birds/")
        primary = shown.partition('class="button primary"')[2].partition("</a>")[0]
        assert shown.count("button primary") == 1
        assert primary.endswith("Start a campaign" if has_model else "Add a model")
        assert ("Try offline" in shown) is ("only compare words" in shown) is not has_model
        if not has_model:
            make_judge("mine")


def test_judging_by_hand_sends_each_unlabelled_pair_once_and_makes_the_owner_a_member(olga: Client) -> None:
    collection = make_collection("birds")
    response = olga.post("/c/birds/judge-by-hand/", follow=True)
    assert response.redirect_chain[-1][0] == "/c/birds/" and b"at least one pair" in response.content
    for text in ("Why?", "How?"):
        make_pair(collection, make_query(collection, text))
    for _ in range(2):
        assert olga.post("/c/birds/judge-by-hand/")["Location"] == "/c/birds/judge/?start"
    assert list(Item.objects.values_list("state", "overlap")) == [("open", 1)] * 2
    assert set(AuditEntry.objects.values_list("act", flat=True)) >= {"member.joined", "pairs.sent"}
    judged = olga.post("/c/birds/judge/next/", follow=True)
    assert b"Why?" in judged.content or b"How?" in judged.content


def test_pages_of_the_first_steps_say_which_one_they_are_until_the_first_campaign(olga: Client) -> None:
    collection = make_collection("birds")
    make_pair(collection)
    steps = {"import": "Title and files", "models": "Who judges", "campaigns": "First campaign"}
    for path, step in steps.items():
        shown = page(olga, f"/c/birds/{path}/")
        assert step in shown.partition('<li aria-current="step">')[2].partition("</li>")[0]
    Campaign.objects.create(collection=collection, policy="single", panel="offline")
    assert not any("first-steps" in page(olga, f"/c/birds/{path}/") for path in steps)
