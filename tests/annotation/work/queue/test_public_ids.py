"""What stands for an item on an annotator's pages: random, their own."""

import pytest

from annotation.models import LOWEST_PUBLIC_ID, Assignment, Membership
from corpus.models import Item
from tests.annotation.work.judging.test_judging_pages import claim, signed_in
from tests.factories import make_collection, make_item, make_member, make_pair
from tests.judging_scene import make_scene


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
