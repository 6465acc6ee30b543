"""What stands for an item on an annotator's pages: random, their own, and the same before and after the upgrade."""

import importlib

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.test import Client

from annotation.models import LOWEST_PUBLIC_ID, Assignment, Membership
from corpus.models import Item, Judgment
from tests.annotation.judging.test_judging_pages import HTMX, claim, signed_in
from tests.factories import make_collection, make_item, make_member, make_pair
from tests.judging_scene import make_scene

KNOWN = [4832451077741090, 4657218253647361, 4617933140778302]
"""Of the items 1, 2 and 123,456,789, as the release before showed them with the key of the test."""
BEFORE = ("annotation", "0019_gold_arguments")


def lend(membership: Membership, count: int) -> list[Assignment]:
    return [
        Assignment.objects.create(
            item=make_item(make_pair(membership.collection)),
            membership=membership,
            state="done",
            lease_until="2026-01-01T00:00Z",
        )
        for _ in range(count)
    ]


@pytest.mark.django_db
def test_public_ids_are_exact_in_javascript_and_do_not_follow_the_items() -> None:
    alice = make_member(make_collection("books"), "alice")
    lend(alice, 40)
    numbers = list(Assignment.objects.order_by("item_id").values_list("public_id", flat=True))
    assert all(LOWEST_PUBLIC_ID <= number < 2 * LOWEST_PUBLIC_ID for number in numbers)
    assert len(set(numbers)) == 40 and numbers not in (sorted(numbers), sorted(numbers, reverse=True))
    assert max(numbers) - min(numbers) > LOWEST_PUBLIC_ID / 2, "they fill their room"


@pytest.mark.django_db
def test_a_public_id_names_the_item_to_its_annotator_alone_and_an_items_own_id_names_itself() -> None:
    books = make_collection("books")
    alice, bob = make_member(books, "alice"), make_member(books, "bob")
    (mine,) = lend(alice, 1)
    mine.refresh_from_db()
    assert Assignment.item_of(alice, mine.public_id) == mine.item_id
    assert Assignment.item_of(bob, mine.public_id) == 0
    assert Assignment.item_of(bob, mine.item_id) == mine.item_id


@pytest.mark.django_db
def test_an_item_that_is_lent_again_keeps_its_public_id() -> None:
    books = make_collection("books")
    make_scene(books, 1)
    client = signed_in(make_member(books, "alice"))
    first = claim(client)
    Assignment.objects.update(lease_until="2026-01-01T00:00Z", state="returned", ended_at="2026-01-01T00:00Z")
    Item.objects.update(taken=0)
    again = claim(client)
    assert again["item"] == first["item"] and again["token"] != first["token"]


def test_the_number_that_pages_showed_is_worked_out_as_before(settings) -> None:
    settings.SECRET_KEY = "a key of the tests"
    migration = importlib.import_module("annotation.migrations.0020_public_ids")
    migration._key.cache_clear()
    assert [migration.shown_before(item) for item in (1, 2, 123_456_789)] == KNOWN
    migration._key.cache_clear()


@pytest.mark.weekly
@pytest.mark.django_db(transaction=True)
def test_a_page_that_was_open_during_the_upgrade_is_still_answered() -> None:
    books = make_collection("books")
    make_scene(books, 2)
    alice = make_member(books, "alice")
    client: Client = signed_in(alice)
    data = claim(client)
    held = Assignment.objects.get()
    shown_before = importlib.import_module("annotation.migrations.0020_public_ids").shown_before
    newest = MigrationExecutor(connection).loader.graph.leaf_nodes()
    try:
        MigrationExecutor(connection).migrate([BEFORE])
    finally:
        MigrationExecutor(connection).migrate(newest)
    assert Assignment.objects.get().token == held.token
    page = {"item": str(shown_before(held.item_id)), "token": data["token"], "grade": 1}
    assert client.post("/c/books/judge/submit/", page, headers=HTMX).status_code == 200
    assert Judgment.objects.get().item_id == held.item_id
