"""Comparisons by programs: a set is drawn, answered, and read with its strengths."""

import pytest

from actions.services import Actor
from annotation.models import Role
from annotation.models.comparisons import ComparisonSet, Preference
from annotation.work.comparing import services
from tests.api.conftest import Call
from tests.comparing_scene import make_relevant
from tests.factories import make_collection, make_member

pytestmark = pytest.mark.django_db


def test_a_set_is_drawn_answered_undone_and_read(call: Call) -> None:
    collection = make_collection("c")
    make_relevant(collection, documents=3)
    ada, alice = make_member(collection, "ada", Role.ADMIN).user, make_member(collection, "alice").user
    drawn = call(ada, "POST", "collections/c/comparisons", {"opponents": 2, "title": "first"})
    assert (drawn.status_code, drawn.json()["comparisons"], drawn.json()["state"]) == (201, 3, "open")
    queue = call(alice, "POST", "collections/c/compare", {}).json()
    assert (len(queue["open"]), queue["left"], queue["closed"]) == (2, 3, "")
    task = queue["open"][0]
    body = {"set": task["set"], "comparison": task["comparison"], "answer": "left"}
    assert call(alice, "POST", "collections/c/compare", {"answer": body}).json()["answered"] == 1
    assert call(alice, "POST", "collections/c/compare", {"undo": True}).json()["answered"] == 0
    call(alice, "POST", "collections/c/compare", {"answer": body | {"answer": "right"}})
    assert Preference.objects.count() == 3
    results = call(ada, "GET", "collections/c/comparisons/1").json()
    assert len(results["queries"][0]["documents"]) == 2
    assert (results["figures"][0]["answers"], results["figures"][0]["left"]["value"]) == (1, 0.0)
    assert [row["answered"] for row in call(ada, "GET", "collections/c/comparisons").json()["items"]] == [1]
    services.end_set(Actor("ada"), ComparisonSet.objects.get())
    assert call(ada, "GET", "collections/c/comparisons/1").json()["state"] == "ended"
    assert call(alice, "POST", "collections/c/compare", {"answer": body}).status_code == 409
