"""The order of the queue in Python and in SQL, when judgments settle an item, and what stands for it on pages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.models import LOWEST_PUBLIC_ID, Assignment, Membership
from annotation.work.queue.aggregation import aggregate_judgments
from corpus.collections.task_order import change_overlap, pair_priority, reprioritise_tasks
from corpus.models import Item
from tests.annotation.work.judging.test_judging_pages import claim, signed_in
from tests.factories import make_collection, make_item, make_member, make_pair
from tests.judging_scene import make_scene

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("order", ["uncertain", "query", "random"])
def test_reprioritise_gives_the_priority_of_the_pure_function(order):
    collection = make_collection(order=order, seed=-7)
    items = [make_item(make_pair(collection), priority=99) for _ in range(4)]
    items[0].pair.uncertainty = 0.75
    items[0].pair.save()
    assert reprioritise_tasks(collection) == 4
    for item in items:
        item.refresh_from_db()
        pair = item.pair
        assert item.priority == pair_priority(
            order, -7, pair_id=pair.pk, query_id=pair.query_id, uncertainty=pair.uncertainty
        )
    assert reprioritise_tasks(collection) == 0
    places, others = (
        [pair_priority("random", seed, pair_id=n, query_id=0, uncertainty=0) for n in range(50)] for seed in (1, 2)
    )
    assert places != others and len(set(places)) == 50 and all(0 <= place < 1 for place in places)


def test_settled_items_keep_their_priority_and_watermarks_are_forgotten():
    collection = make_collection(order="query")
    item = make_item(make_pair(collection), state="settled", priority=5)
    alice = make_member(collection, "alice")
    alice.watermark_priority, alice.watermark_place = 3.0, 9
    alice.save()
    assert reprioritise_tasks(collection) == 0
    item.refresh_from_db()
    alice.refresh_from_db()
    assert item.priority == 5 and alice.watermark_priority is None and alice.watermark_place is None


def test_a_new_overlap_never_falls_below_what_people_took():
    collection = make_collection(overlap=3)
    fresh = make_item(make_pair(collection), overlap=3)
    lent = make_item(make_pair(collection), overlap=3, taken=2)
    judged = make_item(make_pair(collection), overlap=3, taken=1, done=1)
    settled = make_item(make_pair(collection), overlap=3, taken=3, done=3, state="settled")
    change_overlap(collection, 1)
    for item, overlap in ((fresh, 1), (lent, 2), (judged, 2), (settled, 3)):
        item.refresh_from_db()
        assert item.overlap == overlap


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


def test_public_ids_are_exact_in_javascript_and_do_not_follow_the_items() -> None:
    alice = make_member(make_collection("books"), "alice")
    lend(alice, 40)
    numbers = list(Assignment.objects.order_by("item_id").values_list("public_id", flat=True))
    assert all(LOWEST_PUBLIC_ID <= number < 2 * LOWEST_PUBLIC_ID for number in numbers)
    assert len(set(numbers)) == 40 and numbers not in (sorted(numbers), sorted(numbers, reverse=True))
    assert max(numbers) - min(numbers) > LOWEST_PUBLIC_ID / 2, "they fill their room"
    mine, bob = Assignment.objects.latest("pk"), make_member(alice.collection, "bob")
    assert Assignment.item_of(alice, mine.public_id) == Assignment.item_of(bob, mine.item_id) == mine.item_id
    assert Assignment.item_of(bob, mine.public_id) == 0, "it names the item to its annotator alone"


def test_an_item_that_is_lent_again_keeps_its_public_id() -> None:
    books = make_collection("books")
    make_scene(books, 1)
    client = signed_in(make_member(books, "alice"))
    first = claim(client)
    Assignment.objects.update(lease_until="2026-01-01T00:00Z", state="returned", ended_at="2026-01-01T00:00Z")
    Item.objects.update(taken=0)
    again = claim(client)
    assert again["item"] == first["item"] and again["token"] != first["token"]


@pytest.mark.parametrize(
    ("grades", "overlap", "expected"),
    [
        ([1], 1, ("settled", 1)),
        ([], 1, ("open", None)),
        ([1, 1], 3, ("open", None)),
        ([1, 1, 0], 3, ("settled", 1)),
        ([1, 0], 2, ("conflict", None)),
        ([0, 1, 2], 3, ("conflict", None)),
        ([2, 2, 1, 0], 4, ("conflict", None)),
        ([2, 2, 2, 0], 4, ("settled", 2)),
    ],
)
def test_more_than_half_of_the_overlap_settles_and_a_tie_is_a_conflict(grades, overlap, expected):
    assert aggregate_judgments(grades, overlap=overlap) == expected


@given(st.lists(st.integers(0, 3), max_size=7), st.integers(1, 7))
def test_a_settled_grade_has_more_votes_than_all_others_together(grades, overlap):
    came_to = aggregate_judgments(grades, overlap=overlap)
    if came_to[0] == "settled":
        assert grades.count(came_to[1]) > len(grades) - grades.count(came_to[1])
    else:
        assert came_to[1] is None
    assert aggregate_judgments(grades, overlap=overlap, flagged=True) == ("conflict", None)
