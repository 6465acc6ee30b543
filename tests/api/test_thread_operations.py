"""Answers to a flag by API: an adjudicator reads them with the conflict."""

import pytest

from actions.services import Actor
from annotation.access.permissions import collection_scope
from annotation.models import Role
from annotation.models.threads import Thread
from annotation.work.threads.options import ReplyOptions
from annotation.work.threads.services import answer_thread
from tests.api.conftest import Call
from tests.factories import make_collection, make_item, make_member, make_pair
from tests.queue_scene import claim, flag

pytestmark = pytest.mark.django_db


def test_a_conflict_has_the_answers_to_its_flag_without_the_annotators_name(call: Call) -> None:
    books = make_collection("books", order="random")
    make_item(make_pair(books))
    alice, bob = make_member(books, "alice"), make_member(books, "bob", Role.ADJUDICATOR)
    flag(alice, claim(alice), "Two documents in one.")
    (opinion,) = call(bob.user, "GET", "collections/books/conflict").json()["conflict"]["opinions"]
    assert (opinion["flagged"], opinion["replies"]) == (True, [])
    answer_thread(
        Actor.of(collection_scope(bob.user, "answer", "books")), Thread.objects.get(), ReplyOptions(text="Which two?")
    )
    (opinion,) = call(bob.user, "GET", "collections/books/conflict").json()["conflict"]["opinions"]
    assert [(row["author"], row["text"]) for row in opinion["replies"]] == [("bob", "Which two?")]
    assert "alice" not in str(opinion)
