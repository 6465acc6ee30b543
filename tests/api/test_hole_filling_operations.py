"""Hole filling by the API: its estimate, its start, its end."""

from typing import Any

import pytest

from annotation.models import AuditEntry, Membership, Role
from benchmark.models import Filling, Qrels
from corpus.models import Item, Label
from judges.models import Campaign
from tests.api.conftest import Call
from tests.factories import make_collection, make_document, make_member, make_query
from tests.rankings import make_run

pytestmark = pytest.mark.django_db


def last_act() -> tuple[str, dict[str, Any]]:
    entry = AuditEntry.objects.order_by("-pk")[0]
    return entry.act, entry.details


TWO = {"runs": ["one", "two"], "depth": 2}
PEOPLE = {**TWO, "policy": "people"}


@pytest.fixture
def books() -> Membership:
    """A collection with two runs over four documents and the admin Alice; the qrels know none of them."""
    collection = make_collection("books")
    for name in "abcd":
        make_document(collection, f"Text of {name}.", external_id=name)
    make_query(collection, "Question?", external_id="q1")
    make_run(collection, "one", {"q1": ["a", "b"]})
    make_run(collection, "two", {"q1": ["b", "c"]})
    return make_member(collection, "alice", Role.ADMIN)


def test_a_hole_filling_from_the_estimate_to_its_version(call: Call, books: Membership) -> None:
    alice, here = books.user, "collections/books/hole-fillings"
    estimate = call(alice, "POST", f"{here}/estimate", PEOPLE).json()
    assert (estimate["pool"], estimate["judged"], estimate["candidates"], estimate["cost"]) == (3, 0, 3, 0.0)
    asked = {**TWO, "policy": "debate", "panel": "offline"}
    assert call(alice, "POST", f"{here}/estimate", asked).json()["calls"] > 0
    assert not Qrels.objects.exists() and not Filling.objects.exists()
    for wrong, field in (({"runs": ["none"]}, "body.runs"), ({"budget": 3}, "body.budget")):
        refused = call(alice, "POST", here, PEOPLE | wrong)
        assert refused.status_code == 422 and refused.json()["errors"][0]["field"] == field, refused.content
    assert "version 7" in call(alice, "POST", here, {**PEOPLE, "qrels": 7}).json()["detail"]
    key = {"Idempotency-Key": "fill"}
    made = call(alice, "POST", here, PEOPLE, **key)
    assert made.status_code == 201, made.content
    filling = made.json()
    assert (filling["policy"], filling["before"], filling["funnel"]["candidates"]) == ("people", 1, 3)
    assert call(alice, "POST", here, PEOPLE, **key).json() == filling and Filling.objects.count() == 1
    assert last_act() == ("filling.started", {"filling": filling["number"], **PEOPLE})
    assert Item.objects.filter(reason="hole", state="open").count() == 3
    path = f"{here}/{filling['number']}"
    none = call(alice, "POST", f"{path}/finish")
    assert none.status_code == 422 and "No pair is" in none.json()["detail"]
    ended = call(alice, "POST", f"{path}/cancel").json()
    assert ended["state"] == "cancelled" and not Item.objects.filter(state="open").exists()
    assert call(alice, "POST", f"{path}/cancel").status_code == 422
    assert [one["number"] for one in call(alice, "GET", here).json()["items"]] == [filling["number"]]


def test_a_hole_filling_that_is_finished_twice_ends_once(call: Call, books: Membership) -> None:
    filling = call(books.user, "POST", "collections/books/hole-fillings", PEOPLE).json()
    Label.objects.create(pair_id=Filling.objects.get().pairs[0], grade=1, origin="people")
    for _ in range(2):
        path = f"collections/books/hole-fillings/{filling['number']}/finish"
        assert call(books.user, "POST", path).json()["state"] == "filled"
    assert AuditEntry.objects.filter(act="filling.ended").count() == 1


def test_judges_fill_holes_in_a_campaign_that_is_paused_by_its_number(call: Call, books: Membership) -> None:
    body = {**TWO, "policy": "debate", "panel": "offline", "max_calls": 50}
    made = call(books.user, "POST", "collections/books/hole-fillings", body).json()
    assert made["campaign"] and made["state"] == "judging"
    paused = call(books.user, "POST", f"collections/books/campaigns/{made['campaign']}/pause").json()
    assert paused["state"] == "paused" and Campaign.objects.get(number=made["campaign"]).state == "paused"
