"""Onboarding teaches: guidelines first, reasons after practice, positions, a failed test and its retake."""

from dataclasses import fields, replace
from io import BytesIO

import pytest
from django.test import Client

from annotation.models import AuditEntry, Membership, Role
from annotation.models.quality_control import GoldAnswer, GoldArguments, GoldExplanation, GoldPair, GoldSet
from annotation.work.quality_control import onboarding, qualification
from annotation.work.quality_control.onboarding import OnboardingStop, QualificationResult, explanations_of
from corpus.errors import BadInput
from corpus.models import Collection, Item, Pair
from tests.annotation.work.quality_control.test_care import HTMX, answer_right, gold, make_scene
from tests.factories import client_of, make_collection, make_document, make_member, make_pair, make_query
from tests.queue_scene import claim, skip, submit


@pytest.mark.parametrize(
    ("mark", "total", "needed"), [(90, 10, 9), (90, 9, 9), (70, 20, 14), (67, 3, 3), (66, 3, 2), (0, 5, 0), (100, 5, 5)]
)
def test_as_many_right_answers_are_needed_as_reach_the_mark(mark: int, total: int, needed: int) -> None:
    result = QualificationResult(*[0] * len(fields(QualificationResult)))
    assert OnboardingStop("failed", mark=mark, result=replace(result, total=total)).needed == needed
    assert 100 * needed >= mark * total and (needed == 0 or 100 * (needed - 1) < mark * total)


@pytest.fixture
def books(db: None) -> Collection:
    """Five practice pairs and a test of four, from twenty gold pairs."""
    collection = make_collection("books", checks=0)
    make_scene(collection, ordinary=2, known=10)
    for number in range(10):
        gold(make_pair(collection, make_query(collection, f"Which order, {number}?")), 0)
    qualification.make_test(collection=collection, size=4, seed=4, by=None)
    return collection


@pytest.fixture
def alice(books: Collection) -> Membership:
    return make_member(books, "alice")


@pytest.fixture
def charlie(books: Collection) -> Client:
    return client_of(make_member(books, "charlie", Role.ADMIN))


def take(member: Membership, *, wrong: bool) -> None:
    """The practice pairs, then the test."""
    for _ in range(5):
        submit(member, claim(member), 0)
    lease = claim(member)
    while lease is not None:
        lease = submit(member, lease, answer_right(lease, wrong=wrong))
    member.refresh_from_db()


def test_guidelines_come_before_practice_and_before_a_first_pair_without_a_test(alice: Membership) -> None:
    client = client_of(alice)
    page = client.get("/c/books/judge/").text
    assert "First read the guidelines" in page and "Start practice" in page
    assert "Then come 5 practice pairs" in page and "4 correct answers are required" in " ".join(page.split())
    submit(alice, claim(alice), 1)
    assert "First read the guidelines" not in client.get("/c/books/judge/").text
    Collection.objects.update(qualification=False)
    bob = make_member(alice.collection, "bob")
    page = client_of(bob).get("/c/books/judge/?start").text
    assert "First read the guidelines" in page and "data-starts" not in page
    assert "First read the guidelines" in client_of(bob).get("/c/books/judge/query/").text
    Membership.objects.filter(pk=bob.pk).update(lent=1)
    page = client_of(bob).get("/c/books/judge/?start").text
    assert "First read the guidelines" not in page and "data-starts" in page


def test_the_page_counts_practice_and_the_test_with_skipped_pairs(alice: Membership) -> None:
    client = client_of(alice)
    assert "Practice: <strong>1</strong> of 5" in client.post("/c/books/judge/next/", headers=HTMX).text
    skip(alice, claim(alice))
    assert "Practice: <strong>2</strong> of 5" in client.post("/c/books/judge/next/", headers=HTMX).text
    for _ in range(4):
        submit(alice, claim(alice), 1)
    page = client.post("/c/books/judge/next/", headers=HTMX).text
    assert "Test: <strong>1</strong> of 4" in page and "</strong> left" not in page


@pytest.mark.parametrize("wrong", [False, True])
def test_each_practice_answer_is_followed_by_the_reason(alice: Membership, wrong: bool) -> None:
    lease = claim(alice)
    text = "The <b>second</b> sentence answers it."
    GoldExplanation.objects.create(pair=lease.item.pair, text=text, written_by="Dr. E")
    sent = {"item": lease.item_id, "token": lease.token, "grade": answer_right(lease, wrong=wrong)}
    page = client_of(alice).post("/c/books/judge/submit/", sent, headers=HTMX).text
    assert ("The experts disagree" if wrong else "You agree with the experts") in page
    for words in ("The &lt;b&gt;second&lt;/b&gt; sentence answers it.", "Dr. E", "Practice 1 of 5"):
        assert words in page


def test_a_file_holds_before_the_experts_and_these_before_a_model(books: Collection) -> None:
    def read(pair: Pair) -> list[tuple[str, str]]:
        return [(row.text, row.by) for row in explanations_of(books, [pair.pk]).get(pair.pk, [])]

    pair = make_pair(books)
    gold(pair, 1)
    assert read(pair) == []
    turns = [{"side": side, "round": 1, "couple": 0, "reason": f"words {side}"} for side in ("for", "against")]
    GoldArguments.objects.create(pair=pair, couples=1, rounds=1, turns=turns, written_by="offline")
    assert read(pair) == [], "the offline agents explain nothing"
    GoldArguments.objects.update(written_by="a model")
    assert read(pair) == [("words for", "a model")]
    row = GoldPair.objects.create(gold_set=GoldSet.objects.create(collection=books), pair=pair, place=0, stratum="s")
    for number in range(4):
        expert = make_member(books, f"expert-{number}")
        GoldAnswer.objects.create(gold_pair=row, membership=expert, who="expert", grade=1, comment=f"said {number}")
    assert read(pair) == [("said 0", ""), ("said 1", ""), ("said 2", "")]
    GoldExplanation.objects.create(pair=pair, text="from a file")
    assert read(pair) == [("from a file", "")]


def test_all_gold_is_downloaded_and_uploaded_with_its_explanations(books: Collection, charlie: Client) -> None:
    query, document = make_query(books, external_id="=q1"), make_document(books, external_id="d1")
    pair = make_pair(books, query, document)
    gold(pair, 1)
    GoldExplanation.objects.create(pair=pair, text="=1+1")
    answer = charlie.get("/c/books/gold/gold.csv")
    lines = answer.text.splitlines()
    assert lines[0] == "query_id,doc_id,grade,explanation,written_by" and "'=q1,d1,1,'=1+1," in lines
    assert len(lines) == 1 + 21

    def upload(text: str):
        return charlie.post("/c/books/gold/explanations/", {"file": BytesIO(text.encode())}, follow=True)

    assert "0 explanations changed." in upload(answer.text).text, "an exported file changes nothing"
    page = upload("query_id,doc_id,explanation,written_by\n'=q1,d1,It says so.,Eve\nq,gone,x,\n").text
    assert "1 explanation changed." in page and "1 row names no gold pair." in page
    assert GoldExplanation.objects.values_list("text", "written_by").get() == ("It says so.", "Eve")
    refused = upload("query_id,doc_id,grade,explanation\n'=q1,d1,0,Other\n")
    assert refused.status_code == 422 and "the gold grade of this pair is 1, not 0" in refused.text
    assert upload("query_id,doc_id\n").status_code == 422
    assert charlie.post("/c/books/gold/explanations/", {"file": BytesIO(b"\xff\xfe")}).status_code == 422
    upload("query_id,doc_id,explanation\n'=q1,d1,\n")
    assert not GoldExplanation.objects.exists()
    assert AuditEntry.objects.filter(act="gold.explained").count() == 3


def test_a_failed_test_is_a_state_with_a_request_that_the_admin_settles_with_one_act(books, alice, charlie):
    with pytest.raises(BadInput):
        onboarding.ask_retake(membership=alice)
    take(alice, wrong=True)
    client = client_of(alice)
    assert "0 of your 4 answers were correct; 4 are required." in client.get("/c/books/judge/").text
    assert "0 of your 4 test answers were correct; 4 are required" in client.get("/c/books/").text
    for _ in range(2):
        client.post("/c/books/judge/retake/")
    assert AuditEntry.objects.filter(act="qualification.asked", person=alice.user).count() == 1
    page = client.get("/c/books/judge/").text
    assert "You asked to take the test again" in page and "Ask to retake" not in page
    assert "You asked to take it again." in client.get("/c/books/").text
    for address in ("/c/books/", "/c/books/members/"):
        page = charlie.get(address).text
        assert "asks to take the test again" in page and "Allow another test" in page
    before = len(qualification.list_tests(books))
    answer = charlie.post(f"/c/books/people/{alice.pk}/qualification/", {"page": "members"})
    assert answer["Location"] == "/c/books/members/"
    assert len(qualification.list_tests(books)) == before + 1, "another test, of other pairs"
    assert "asks to take the test again" not in charlie.get("/c/books/").text
    alice.refresh_from_db()
    assert (alice.failed_at, alice.retake_asked_at) == (None, None)
    pairs = [set(Item.objects.filter(reason="qualification", seq=seq).values_list("pair", flat=True)) for seq in (0, 1)]
    assert not pairs[0] & pairs[1]
    assert client.post("/c/books/judge/retake/").status_code == 409
    # Without unused gold the admin is told and the request stays, until the test is waived.
    take(alice, wrong=True)
    onboarding.ask_retake(membership=alice)
    for pair in qualification.free_gold_pairs(books, dict.fromkeys(Pair.objects.values_list("pk", flat=True), 1)):
        Item.objects.create(collection=books, pair=pair, reason="qualification", seq=9, state="withdrawn", place=0)
    answer = charlie.post(f"/c/books/people/{alice.pk}/qualification/")
    assert answer.status_code == 422 and "There is no other test" in answer.text
    alice.refresh_from_db()
    assert alice.retake_asked_at is not None
    qualification.waive_test(membership=alice, by=None)
    alice.refresh_from_db()
    assert alice.retake_asked_at is None and alice.qualified_at is not None
    assert claim(alice).item.reason == "disagreement"
