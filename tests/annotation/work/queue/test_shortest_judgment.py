"""A second press judges nothing: the server refuses a grade that comes sooner than anybody can have looked."""

import re
import time

import pytest
from django.core import signing

from annotation.models import Membership, Role
from annotation.models.quality_control import GoldAnswer, GoldPair
from annotation.work.judging.forms import CONFLICT, parse_shown
from annotation.work.quality_control import gold
from corpus.collections.configure import configure_collection
from corpus.models import Judgment
from tests.factories import make_collection, make_item, make_member, make_pair
from tests.judging_scene import make_scene
from tests.queue_scene import signed_in

pytestmark = pytest.mark.django_db(transaction=True)
HTMX = {"HX-Request": "true"}
LOOKED = 0.32


def fields(page: str, proof: str = "token") -> dict[str, str]:
    return {name: re.search(rf'name="{name}"\s+value="([^"]*)"', page)[1] for name in ("item", proof)}


def test_a_grade_right_after_its_pair_came_is_refused_and_the_text_kept() -> None:
    books = make_collection("books", min_judgment_ms=300)
    make_scene(books, 2)
    alice = signed_in(make_member(books, "alice"), **HTMX)
    page = alice.post("/c/books/judge/next/").text
    assert 'data-rest="400"' in page
    answer = alice.post("/c/books/judge/submit/", {**fields(page), "grade": 1, "comment": "typed fast"})
    assert answer.status_code == 422
    assert "only just arrived" in answer.text and ">typed fast</textarea>" in answer.text
    assert fields(answer.text) == fields(page)
    assert not Judgment.objects.exists()
    time.sleep(LOOKED)
    second = alice.post("/c/books/judge/submit/", {**fields(page), "grade": 1, "milliseconds": "320"})
    assert second.status_code == 200 and Judgment.objects.count() == 1
    assert alice.post("/c/books/judge/submit/", {**fields(second.text), "grade": 1}).status_code == 422
    again = alice.post("/c/books/judge/submit/", {**fields(page), "grade": 1})
    assert again.status_code == 200, "the same press sent again is known, not refused"
    assert Judgment.objects.count() == 1


@pytest.mark.slow
def test_looking_at_the_page_again_does_not_begin_anew_and_undo_does() -> None:
    # Two requests come within two seconds on a loaded machine too.
    books = make_collection("books", min_judgment_ms=2000)
    make_scene(books, 1)
    alice = signed_in(make_member(books, "alice"), **HTMX)
    page = alice.post("/c/books/judge/next/").text
    time.sleep(2.02)
    for again in (alice.get("/c/books/judge/"), alice.post("/c/books/judge/next/")):
        assert fields(again.text) == fields(page)
    assert alice.post("/c/books/judge/submit/", {**fields(page), "grade": 1}).status_code == 200
    opened = alice.post("/c/books/judge/undo/", {"item": fields(page)["item"]}).text
    assert alice.post("/c/books/judge/submit/", {**fields(opened), "grade": 0}).status_code == 422
    time.sleep(2.02)
    assert alice.post("/c/books/judge/submit/", {**fields(opened), "grade": 0}).status_code == 200


def test_a_revealed_debate_is_read_before_the_final_vote() -> None:
    books = make_collection("books", min_judgment_ms=300, arms={"shown": 0, "hidden": 0, "reveal": 1})
    make_scene(books, 1)
    alice = signed_in(make_member(books, "alice"), **HTMX)
    page = alice.post("/c/books/judge/next/").text
    time.sleep(LOOKED)
    revealed = alice.post("/c/books/judge/submit/", {**fields(page), "grade": 1}).text
    assert alice.post("/c/books/judge/submit/", {**fields(revealed), "grade": 1}).status_code == 422
    assert list(Judgment.objects.values_list("step", flat=True)) == ["first"]


def test_what_the_page_measured_counts_too_and_on_whole_queries_it_is_all_there_is() -> None:
    books = make_collection("books", min_judgment_ms=300)
    make_scene(books, 2)
    alice = signed_in(make_member(books, "alice"), **HTMX)
    page = alice.post("/c/books/judge/query/next/", follow=True).text
    time.sleep(LOOKED)
    asked = {**fields(page), "grade": 1, "comment": "typed fast"}
    hasty = alice.post("/c/books/judge/query/submit/", {**asked, "milliseconds": "120"})
    assert hasty.status_code == 422 and 'value="typed fast"' in hasty.text and not Judgment.objects.exists()
    assert alice.post("/c/books/judge/query/submit/", {**asked, "milliseconds": "410"}).status_code == 200


def test_an_adjudicator_reads_the_next_conflict_first() -> None:
    """The time of another conflict, and one that somebody made up, say nothing about this one."""
    books = make_collection("books", min_judgment_ms=300)
    items = [make_item(make_pair(books), reason="conflict", state="conflict") for _ in range(2)]
    bob = signed_in(make_member(books, "bob", Role.ADJUDICATOR), **HTMX)
    first = fields(bob.get("/c/books/adjudicate/").text, "shown")
    assert bob.post("/c/books/adjudicate/submit/", {**first, "grade": 1}).status_code == 422, "the first one too"
    time.sleep(LOOKED)
    passed = fields(bob.get(f"/c/books/adjudicate/?after={first['item']}").text, "shown")
    for stamp in (passed["shown"], first["shown"], first["shown"][::-1], ""):
        hasty = {"item": passed["item"], "shown": stamp, "grade": 1}
        assert bob.post("/c/books/adjudicate/submit/", hasty).status_code == 422
    second = fields(bob.post("/c/books/adjudicate/submit/", {**first, "grade": 1}).text, "shown")
    hasty = bob.post("/c/books/adjudicate/submit/", {**second, "grade": 1, "comment": "typed fast"})
    assert hasty.status_code == 422 and ">typed fast</textarea>" in hasty.text
    assert Judgment.objects.count() == 1
    time.sleep(LOOKED)
    assert bob.post("/c/books/adjudicate/submit/", {**second, "grade": 1, "milliseconds": "90"}).status_code == 422
    assert bob.post("/c/books/adjudicate/submit/", {**second, "grade": 1}).status_code == 200
    assert sorted(Judgment.objects.values_list("item", flat=True)) == sorted(item.pk for item in items)


def test_a_page_that_was_open_during_an_upgrade_still_says_when_it_was_shown() -> None:
    alice = make_member(make_collection("books"), "alice")
    stamp = signing.dumps([CONFLICT, alice.pk, 7, time.time_ns() // 1_000_000 - 900], salt="annotation.judging.shown")
    assert parse_shown({"shown": stamp}, CONFLICT, alice, 7) >= 900
    assert parse_shown({"shown": stamp}, CONFLICT, alice, 8) == 0


def test_an_expert_and_a_senior_read_a_gold_pair_first() -> None:
    """Their grades are those that everybody is measured by."""
    books = make_collection("books", min_judgment_ms=300)
    for _ in range(7):
        make_pair(books)
    gold.draw(collection=books, size=2, seed=1, spot=1, by=None)
    GoldPair.objects.update(practice=False, spot=True)
    expert = make_member(books, "alice")
    Membership.objects.filter(pk=expert.pk).update(is_expert=True)
    for person, address in ((expert, "grade"), (make_member(books, "bob", Role.ADJUDICATOR), "review")):
        known, client = GoldAnswer.objects.count(), signed_in(person, **HTMX)
        page = client.get(f"/c/books/gold/{address}/").text
        assert 'data-rest="400"' in page
        asked = fields(page, "shown")
        hasty = client.post(f"/c/books/gold/{address}/", {**asked, "grade": 1, "comment": "typed fast"})
        assert hasty.status_code == 422
        assert "only just arrived" in hasty.text and ">typed fast</textarea>" in hasty.text
        time.sleep(LOOKED)
        hasty = client.post(f"/c/books/gold/{address}/", {**asked, "grade": 1, "milliseconds": "90"})
        assert hasty.status_code == 422 and GoldAnswer.objects.count() == known
        answer = client.post(f"/c/books/gold/{address}/", {**asked, "grade": 1, "milliseconds": "420"})
        assert answer.status_code == 200
        assert list(GoldAnswer.objects.values_list("milliseconds", flat=True))[known:] == [420]


def test_the_time_is_a_setting_and_zero_asks_for_none() -> None:
    books = make_collection("books", min_judgment_ms=300)
    make_scene(books, 3)
    admin = signed_in(make_member(books, "charlie", Role.ADMIN), **HTMX)
    form = {"title": "Books", "overlap": 1, "order": "random", "lease_minutes": 20, "relevant_from": 1}
    assert admin.post("/c/books/settings/", {**form, "min_judgment_ms": 10_001}).status_code == 422
    assert admin.post("/c/books/settings/", form).status_code == 302
    books.refresh_from_db()
    assert books.min_judgment_ms == 300
    assert admin.post("/c/books/settings/", {**form, "min_judgment_ms": 0}).status_code == 302
    page = admin.post("/c/books/judge/next/").text
    assert 'data-rest="0"' in page
    assert admin.post("/c/books/judge/submit/", {**fields(page), "grade": 1}).status_code == 200
    assert configure_collection(books, {"min_judgment_ms": 500}) == ["min_judgment_ms"]
