"""What people and providers do stands on the Overview, and no button of an annotator does nothing."""

import time

import pytest
from django.test import Client
from django.utils import timezone

from annotation.home.campaigns import selectors
from annotation.models import Assignment, Membership, Role
from annotation.models.quality_control import ConsentText
from corpus.models import Collection
from judges.engine.account_states import AccountState
from judges.models import JudgeVersion
from judges.models.costs import Ledger
from tests.evidence import make_campaign, make_judgment
from tests.factories import client_of, make_collection, make_item, make_member, make_pair
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
