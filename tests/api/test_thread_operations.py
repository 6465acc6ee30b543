"""Comments and flags by API: an admin lists what waits, an adjudicator answers it, its author reads the answer."""

import pytest

from annotation.models import Membership, Role
from corpus.models import Collection
from tests.api.conftest import Call
from tests.factories import make_collection, make_item, make_member, make_pair
from tests.queue_scene import claim, flag, submit

pytestmark = pytest.mark.django_db


@pytest.fixture
def books() -> Collection:
    return make_collection("books", order="random")


@pytest.fixture
def alice(books: Collection) -> Membership:
    make_item(make_pair(books))
    make_item(make_pair(books))
    alice = make_member(books, "alice")
    submit(alice, claim(alice), 1, comment="Cut off at the end.")
    flag(alice, claim(alice), "Two documents in one.")
    return alice


def test_threads_are_listed_answered_and_read(books: Collection, alice: Membership, call: Call) -> None:
    bob, charlie = make_member(books, "bob", Role.ADJUDICATOR), make_member(books, "charlie", Role.ADMIN)
    everything = call(charlie.user, "GET", "collections/books/threads").json()["items"]
    assert [(row["text"], row["flagged"], row["username"], row["waits"]) for row in everything] == [
        ("Cut off at the end.", False, "alice", True),
        ("Two documents in one.", True, "alice", False),
    ]
    (waiting,) = call(charlie.user, "GET", "collections/books/threads?unanswered=true").json()["items"]
    path = f"collections/books/replies/{waiting['item']}/{waiting['number']}"
    answer = call(charlie.user, "POST", path, {"text": "Thank you.", "outcome": "corrected"})
    assert answer.status_code == 201 and answer.json()["author"] == "charlie"
    assert call(charlie.user, "GET", "collections/books/threads?unanswered=true").json()["items"] == []
    refused = call(charlie.user, "POST", path, {"text": ""})
    assert refused.status_code == 422 and refused.json()["errors"][0]["option"] == "text"
    assert call(charlie.user, "POST", f"{path}0", {"text": "A"}).status_code == 404

    conflict = call(bob.user, "GET", "collections/books/conflict").json()["conflict"]
    (opinion,) = conflict["opinions"]
    path = f"collections/books/replies/{conflict['item']}/{opinion['thread']}"
    assert opinion["replies"] == [] and call(bob.user, "POST", path, {"text": "Which two?"}).status_code == 201
    (opinion,) = call(bob.user, "GET", "collections/books/conflict").json()["conflict"]["opinions"]
    assert [message["text"] for message in opinion["replies"]] == ["Which two?"] and "alice" not in str(opinion)
    assert call(bob.user, "GET", "collections/books/threads").status_code == 403

    own = call(alice.user, "GET", "collections/books/task/replies").json()["items"]
    assert [(row["outcome"], row["unread"], len(row["replies"])) for row in own] == [
        ("document corrected", True, 1),
        ("Waiting for an adjudicator.", True, 1),
    ]
    assert not {"pair", "number", "waits"} & set(own[0])
    seen = {"until": max(row["replies"][-1]["at"] for row in own)}
    assert call(alice.user, "POST", "collections/books/task/replies/seen", seen).status_code == 204
    own = call(alice.user, "GET", "collections/books/task/replies").json()["items"]
    assert [row["unread"] for row in own] == [False, False]
