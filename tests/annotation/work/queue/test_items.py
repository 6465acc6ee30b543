"""The order of the queue in Python and in SQL, and what a change of settings does to open items."""

import pytest

from corpus.collections.task_order import change_overlap, pair_priority, reprioritise_tasks
from tests.factories import make_collection, make_item, make_member, make_pair

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


def test_a_random_order_depends_on_the_seed_and_nothing_else():
    places = {
        seed: [pair_priority("random", seed, pair_id=n, query_id=0, uncertainty=0) for n in range(50)]
        for seed in (1, 2)
    }
    assert places[1] != places[2]
    assert all(0 <= place < 1 for place in places[1])
    assert len(set(places[1])) == 50


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
