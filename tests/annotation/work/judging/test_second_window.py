"""Two windows on one pair: the same decision sent again is answered as done, any other one is refused with its text."""

import re
from itertools import pairwise
from typing import Any

import pytest
from django.test import Client

from annotation.models import Assignment, Membership, Role
from annotation.models.aspects import SecondReading
from annotation.work.aspects import second
from corpus.errors import BadInput
from corpus.models import Collection, Item, Judgment, Label, Target
from tests.annotation.work.aspects.test_second_person import Field
from tests.annotation.work.judging.test_evidence_pages import TEXTS, failed_texts
from tests.annotation.work.judging.test_judging_pages import HTMX, claim, fields, signed_in
from tests.api.conftest import call as call  # a fixture
from tests.factories import make_collection, make_document, make_member, make_pair, make_query
from tests.judging_scene import make_scene

pytestmark = pytest.mark.django_db

# What a person can send about a pair: the address, the form, what the page says of it once it is stored.
DECISIONS: dict[str, tuple[str, dict[str, Any], str]] = {
    "grade": ("submit", {"grade": 2}, "2 relevant"),
    "another grade": ("submit", {"grade": 0}, "0 not relevant"),
    "a comment": ("submit", {"grade": 2, "comment": "clear"}, "the comment “clear”"),
    "evidence": ("submit", {"grade": 2, "spans": "0-7"}, "2 relevant"),
    "flag": ("flag", {"note": ""}, "already flagged"),
    "a note": ("flag", {"note": "two of them"}, "the note “two of them”"),
    "skip": ("skip", {"reason": "language"}, "read this language"),
    "another reason": ("skip", {"reason": "other"}, "Another reason"),
}
# Each decision is sent twice, is followed by another one, and follows one; in both windows.
CHANGED = list(pairwise([*DECISIONS, "grade"]))
TWO = [*((first, first, "") for first in DECISIONS), *((*two, "") for two in CHANGED)]
TWO += [("grade", "grade", "query/"), *((*two, "query/") for two in CHANGED)]


@pytest.fixture
def collection() -> Collection:
    return make_collection("books", grades=3, relevant_from=2)


def stored(item: int) -> tuple[Any, ...]:
    own = Assignment.objects.get(public_id=item)
    rows = Judgment.objects.filter(item=own.item).order_by("pk").values_list("grade", "comment", "spans")
    return own.state, own.flagged, own.flag_note, own.skip_reason, list(rows), Item.objects.get(pk=own.item_id).state


def send(client: Client, door: str, held: dict[str, str], decision: str) -> Any:
    address, form, _said = DECISIONS[decision]
    return client.post(f"/c/books/judge/{door}{address}/", {**held, **form}, headers=HTMX)


@pytest.mark.parametrize(("first", "other", "door"), TWO)
def test_only_the_same_decision_sent_again_is_answered_as_done(collection, client, first, other, door):
    make_scene(collection, 2)
    held = claim(client)
    assert send(client, door, held, first).status_code == 200
    before = stored(int(held["item"]))
    answer = send(client, door, held, other)
    assert stored(int(held["item"])) == before
    if first == other:
        assert answer.status_code == 200
        return
    assert answer.status_code == 409
    assert "Saved." not in answer.text and DECISIONS[first][2] in answer.text
    text = next((value for key, value in DECISIONS[other][1].items() if key in ("comment", "note") and value), "")
    assert text in answer.text
    # The way to change it: undone, the pair comes with what was written on it, and takes the other decision.
    assert f"/judge/{door}undo/" in answer.text
    hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', answer.text))
    again = client.post(f"/c/books/judge/{door}undo/", {"item": held["item"], **hidden}, headers=HTMX)
    assert again.status_code == 200 and text in again.text
    assert send(client, door, fields(again.text), other).status_code == 200
    assert stored(int(held["item"])) != before


def test_other_texts_on_a_pair_that_asks_for_texts_are_refused_and_kept(collection: Collection, client: Client) -> None:
    document = make_document(collection, "Water boils at 100 °C at sea level. Ice melts at 0 °C.")
    pair = make_pair(collection, make_query(collection, "When does water boil?"), document)
    Label.objects.create(pair=pair, grade=2, origin="debate")
    failed_texts(pair)
    held = claim(client)
    address = "/c/books/judge/evidence/"
    for _ in range(2):
        assert client.post(address, {**held, **TEXTS, "rating": 3}, headers=HTMX).status_code == 200
    for other in ({"rating": 4}, {"rating": 3, "contribution": "It names the boiling point."}):
        answer = client.post(address, {**held, **TEXTS, **other}, headers=HTMX)
        assert answer.status_code == 409 and "saved other texts" in answer.text
        assert (other.get("contribution") or TEXTS["contribution"]) in answer.text
    assert Target.objects.filter(kind="person").count() == 1


def test_an_adjudicators_other_decision_is_refused_and_can_be_changed(collection: Collection) -> None:
    (item, _other) = make_scene(collection, 2, state="conflict")
    charlie = signed_in(make_member(collection, "charlie", Role.ADJUDICATOR))
    address, form = "/c/books/adjudicate/submit/", {"item": item.pk, "grade": 2, "comment": "plain"}
    for _ in range(2):
        assert charlie.post(address, form, headers=HTMX).status_code == 200
    for other in ({"grade": 0}, {"comment": "another thought"}):
        answer = charlie.post(address, form | other, headers=HTMX)
        assert answer.status_code == 409 and "2 relevant" in answer.text and "“plain”" in answer.text
        assert "/adjudicate/undo/" in answer.text and "Decision saved." not in answer.text
    assert Judgment.objects.count() == 1
    undone = {"item": item.pk, "comment": "another thought"}
    again = charlie.post("/c/books/adjudicate/undo/", undone, headers=HTMX)
    assert again.status_code == 200 and ">another thought</textarea>" in again.text
    assert charlie.post(address, form | {"grade": 0}, headers=HTMX).status_code == 200
    assert Label.objects.get().grade == 0


def test_the_api_refuses_the_other_decision(collection: Collection, alice: Membership, call: Any) -> None:
    make_scene(collection, 3)
    task = call(alice.user, "POST", "collections/books/task/claim").json()["task"]
    held = {"item": task["item"], "token": task["token"]}
    judged = {**held, "grade": 2, "comment": "plain", "spans": [[0, 7]]}
    for _ in range(2):
        assert call(alice.user, "POST", "collections/books/task/judge", judged).status_code == 200
    for action, other in (
        *(("judge", judged | change) for change in ({"grade": 1}, {"comment": "else"}, {"spans": []})),
        ("flag", {**held, "note": "look"}),
        ("skip", {**held, "reason": "other"}),
    ):
        answer = call(alice.user, "POST", f"collections/books/task/{action}", other)
        assert answer.status_code == 409, answer.content
    assert Judgment.objects.count() == 1 and not Assignment.objects.filter(flagged=True).exists()


def test_a_second_reading_of_the_same_query_is_the_same_or_refused() -> None:
    field = Field()
    sample = second.draw_sample(field.bob)
    task = second.next_task(sample, field.bob)
    assert task is not None
    weights = {entry.id: 3 for entry in task.entries}
    kept = second.submit_reading(sample, field.bob, task.revision.pk, weights, "hm")
    assert second.submit_reading(sample, field.bob, task.revision.pk, weights, "hm") == kept
    for other in ((weights | {"a1": 5}, "hm"), (weights, "another comment")):
        with pytest.raises(BadInput, match="a1 3, a2 3, a3 3"):
            second.submit_reading(sample, field.bob, task.revision.pk, *other)
    assert SecondReading.objects.count() == 1
