"""The addresses of judging and adjudication, with plain forms and with HTMX."""

import re

import pytest
from django.test import Client

from annotation.models import Assignment, Role
from corpus.models import Item, Judgment, Label
from tests.factories import make_collection, make_member, make_pair
from tests.judging_scene import make_scene
from tests.queue_scene import signed_in as signed_in

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}


@pytest.fixture
def collection():
    return make_collection("books", grades=3, relevant_from=2, lease_minutes=10)


def fields(page: str) -> dict[str, str]:
    """What the form of the open pair sends along."""
    return {name: re.search(rf'name="{name}"\s+value="([^"]*)"', page)[1] for name in ("item", "token")}


def claim(client: Client) -> dict[str, str]:
    answer = client.post("/c/books/judge/next/", headers=HTMX)
    assert answer.status_code == 200
    return fields(answer.text)


def test_reading_the_page_never_claims_and_the_empty_queue_is_a_calm_200(collection, client):
    for headers in ({}, HTMX):
        assert 'data-queue="empty"' in client.get("/c/books/judge/", headers=headers).text
    assert client.post("/c/books/judge/next/", headers=HTMX).status_code == 200
    make_scene(collection, 1)
    page = client.get("/c/books/judge/")
    assert "Start judging" in page.text and "no-store" in page["Cache-Control"]
    for address in ("next", "submit", "skip", "flag", "undo"):
        assert client.get(f"/c/books/judge/{address}/").status_code == 405
    assert not Assignment.objects.exists()


def test_plain_forms_get_303_and_htmx_gets_the_next_pair(collection, client):
    make_scene(collection, 3)
    answer = client.post("/c/books/judge/next/")
    assert (answer.status_code, answer["Location"]) == (303, "/c/books/judge/")
    first = fields(client.get("/c/books/judge/").text)
    answer = client.post("/c/books/judge/submit/", {**first, "grade": 2, "comment": "plain"})
    assert (answer.status_code, answer["Location"]) == (303, "/c/books/judge/")
    page = client.get("/c/books/judge/")
    assert "Saved." in page.text
    second = fields(page.text)
    answer = client.post("/c/books/judge/submit/", {**second, "grade": 3}, headers=HTMX)
    assert answer.status_code == 200
    assert "<html" not in answer.text
    assert fields(answer.text)["item"] not in (first["item"], second["item"])
    assert "no-store" in answer["Cache-Control"]
    assert list(Judgment.objects.order_by("pk").values_list("grade", "comment")) == [(2, "plain"), (3, "")]


def test_a_grade_off_the_scale_is_422_and_keeps_what_was_typed(collection, client):
    make_scene(collection, 1)
    held = claim(client)
    for grade in ("", "4", "-1", "1.5", "yes", "٣", "9" * 30):
        answer = client.post("/c/books/judge/submit/", {**held, "grade": grade, "comment": "kept"}, headers=HTMX)
        assert answer.status_code == 422, grade
        assert "Nothing was saved" in answer.text and ">kept</textarea>" in answer.text
    assert not Judgment.objects.exists()


def test_a_lost_lease_is_409_and_keeps_the_text(collection, client):
    make_scene(collection, 2)
    data = claim(client)
    Item.objects.filter(assignments__public_id=data["item"]).update(state="settled")
    for headers in ({}, HTMX):
        answer = client.post(
            "/c/books/judge/submit/", {**data, "grade": 1, "comment": "my <b>thought</b>"}, headers=headers
        )
        assert answer.status_code == 409
        assert "my &lt;b&gt;thought&lt;/b&gt;</textarea>" in answer.text
        assert "resolved while you" in answer.text
    assert claim(client)["item"] != data["item"]


def test_an_item_of_somebody_else_does_not_exist_and_a_skip_needs_a_reason(collection, client):
    make_scene(collection, 1)
    bob = signed_in(make_member(collection, "bob"))
    data = claim(client)
    for address in ("submit", "skip", "flag", "undo"):
        answer = bob.post(f"/c/books/judge/{address}/", {**data, "grade": 1, "reason": "other"}, headers=HTMX)
        assert answer.status_code == 404
    assert bob.get(f"/c/books/judge/history/{data['item']}/").status_code == 404
    assert client.post("/c/books/judge/skip/", {**data, "reason": "tired"}, headers=HTMX).status_code == 422
    answer = client.post("/c/books/judge/skip/", {**data, "reason": "knowledge"}, headers=HTMX)
    assert 'data-queue="empty"' in answer.text
    assert Assignment.objects.get().skip_reason == "knowledge"


def test_undo_by_plain_form_and_its_refusal_which_keeps_what_was_typed_on_the_open_pair(collection, client):
    make_scene(collection, 2)
    data = claim(client)
    client.post("/c/books/judge/submit/", {**data, "grade": 1})
    assert client.post("/c/books/judge/undo/", {"item": data["item"]}).status_code == 303
    again = fields(client.get("/c/books/judge/").text)
    assert again["item"] == data["item"] and again["token"] != data["token"]
    following = fields(client.post("/c/books/judge/submit/", {**again, "grade": 0}, headers=HTMX).text)
    client.post("/c/books/judge/draft/", {**following, "comment": "half a thought"})
    Assignment.objects.filter(public_id=data["item"]).update(ended_at="2020-01-01T00:00Z")
    refused = client.post("/c/books/judge/undo/", {"item": data["item"]}, headers=HTMX)
    assert refused.status_code == 409 and "24 hours" in refused.text
    assert fields(refused.text) == following and ">half a thought</textarea>" in refused.text


def test_texts_carry_their_language_and_each_grade_has_a_button(collection, client):
    make_scene(collection, 1, text="القاموس يحفظ ترتيب الإدراج. هذا نص عربي قصير عن الترتيب.")
    page = client.post("/c/books/judge/next/", headers=HTMX).text
    assert re.search(r'<div class="text"\s+(?:data-terms="[^"]*" )?lang="ar"\s+dir="rtl">', page)
    assert re.search(r'<h1 id="query" tabindex="-1" lang="en"\s+dir="ltr">', page)
    assert re.findall(r'name="grade"\s+value="(\d+)"\s+data-key="(\d)"', page) == [(n, n) for n in "0123"]
    assert "Two models" in page
    assert not re.search(r"checked[ >](?!.*keys)|selected|aria-pressed", page.split('id="answer"')[1])
    Item.objects.all().delete()
    Item.objects.create(collection=collection, pair=make_pair(collection), reason="policy", place=0)
    page = client.post("/c/books/judge/next/", headers=HTMX).text
    assert 'id="debate"' in page and "Two models" not in page, "a pair without a debate"


def test_an_adjudicator_settles_by_plain_form_leaves_for_later_and_takes_back(collection, alice, client):
    first, second = make_scene(collection, 2, state="conflict")
    charlie = signed_in(make_member(collection, "charlie", Role.ADJUDICATOR))
    page = charlie.get("/c/books/adjudicate/").text
    item = re.search(r'name="item" value="(\d+)"', page)[1]
    later = charlie.get(f"/c/books/adjudicate/?after={item}").text
    assert {item, re.search(r'name="item" value="(\d+)"', later)[1]} == {str(first.pk), str(second.pk)}
    bad = charlie.post("/c/books/adjudicate/submit/", {"item": item, "grade": "7"}, headers=HTMX)
    assert bad.status_code == 422
    done = charlie.post("/c/books/adjudicate/submit/", {"item": item, "grade": "2", "comment": "clear"})
    assert done.status_code == 303
    assert Label.objects.get().origin == "adjudicator"
    other = signed_in(make_member(collection, "dora", Role.ADJUDICATOR))
    late = other.post("/c/books/adjudicate/submit/", {"item": item, "grade": "0", "comment": "mine"}, headers=HTMX)
    assert late.status_code == 409
    assert ">mine</textarea>" in late.text.split('id="answer"')[0]  # beside the next pair, not as a comment on it
    assert charlie.post("/c/books/adjudicate/undo/", {"item": item}).status_code == 303
    assert Item.objects.get(pk=item).state == "conflict"
    assert client.get("/c/books/adjudicate/").status_code == 403


def test_a_refused_decision_comes_back_on_its_own_conflict(collection):
    make_scene(collection, 3, state="conflict")
    charlie = signed_in(make_member(collection, "charlie", Role.ADJUDICATOR))
    first = re.search(r'name="item" value="(\d+)"', charlie.get("/c/books/adjudicate/").text)[1]
    second = re.search(r'name="item" value="(\d+)"', charlie.get(f"/c/books/adjudicate/?after={first}").text)[1]
    given = {"item": second, "comment": "about the second"}
    refused = charlie.post("/c/books/adjudicate/submit/", given, headers=HTMX)
    assert refused.status_code == 422 and "Choose a grade" in refused.text
    assert re.search(r'name="item" value="(\d+)"', refused.text)[1] == second != first
    assert ">about the second</textarea>" in refused.text
    assert charlie.post("/c/books/adjudicate/submit/", {"item": "x"}, headers=HTMX).status_code == 422


def test_history_lists_own_decisions_in_pages(collection, client, monkeypatch):
    monkeypatch.setattr("annotation.work.judging.page.HISTORY", 2)
    make_scene(collection, 3)
    for grade in (0, 1, 2):
        client.post("/c/books/judge/submit/", {**claim(client), "grade": grade})
    page = client.get("/c/books/judge/history/").text
    assert re.findall(r"<strong>(\d[^<]*)</strong>", page) == ["2 relevant", "1 slightly relevant"]
    older = client.get("/c/books/judge/history/" + re.search(r'href="(\?before=[^"]+)"', page)[1]).text
    assert re.findall(r"<strong>(\d[^<]*)</strong>", older) == ["0 not relevant"]
    for cursor in ("2026-02-31T00:00Z_1", "2026-01-01T00:00_1", f"2026-01-01T00:00Z_{'9' * 5000}", "x"):
        assert client.get("/c/books/judge/history/", {"before": cursor}).text.count("<strong>2 relevant") == 1
    item = re.search(r"/judge/history/(\d+)/", page)[1]
    one = client.get(f"/c/books/judge/history/{item}/").text
    assert '<strong class="given">2 relevant</strong>' in one
