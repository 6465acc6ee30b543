"""All that waits of a query, lent together: one group of leases, each settled by itself."""

import pytest

from annotation.models import Assignment, Membership
from annotation.work.judging import submitting
from annotation.work.queue import assignment, undo
from annotation.work.queue.annotators import SubmittedAnswer
from corpus.models import Collection, Item, Judgment
from tests.factories import make_document, make_item, make_pair, make_query
from tests.queue_scene import claim, desk, submit

pytestmark = pytest.mark.django_db


def items_of_query(collection: Collection, number: int, text: str = "tides") -> list[Item]:
    query = make_query(collection, f"What about {text}?")
    pairs = [make_pair(collection, query, make_document(collection, f"{text} {place}")) for place in range(number)]
    return [make_item(pair) for pair in pairs]


def claim_query(member: Membership) -> list[Assignment]:
    assignment.in_transaction(lambda db: submitting.claim_query(db, desk(member)))
    return held(member)


def held(member: Membership) -> list[Assignment]:
    return list(Assignment.objects.filter(membership=member, state="open").order_by("place").select_related("item"))


def settle(member: Membership, lease: Assignment, grade: int) -> None:
    answer = SubmittedAnswer(lease.item_id, lease.token, grade)
    assignment.in_transaction(lambda db: assignment.submit_judgment(db, desk(member), answer))


def test_a_claim_of_a_query_lends_all_its_pairs_and_none_of_another(collection, alice):
    tides, moons = items_of_query(collection, 4), items_of_query(collection, 2, "moons")
    leases = claim_query(alice)
    assert {lease.item_id for lease in leases} == {item.pk for item in tides}
    assert [lease.place for lease in leases] == [0, 1, 2, 3]
    assert len({lease.token for lease in leases}) == 4
    assert sorted(lease.number for lease in leases) == [0, 1, 2, 3]
    alice.refresh_from_db()
    assert alice.lent == 4
    assert set(Item.objects.filter(pk__in=[item.pk for item in tides]).values_list("taken", flat=True)) == {1}
    assert set(Item.objects.filter(pk__in=[item.pk for item in moons]).values_list("taken", flat=True)) == {0}
    for lease in leases:
        settle(alice, lease, 1)
    Item.objects.filter(pk__in=[item.pk for item in moons]).delete()
    items_of_query(collection, 25)
    assert len(claim_query(alice)) == 20, "at most"


def test_claiming_again_keeps_the_group_and_settling_claims_nothing(collection, alice):
    items_of_query(collection, 3)
    items_of_query(collection, 1, "moons")
    first, second, third = claim_query(alice)
    settle(alice, second, 1)
    undo.undo_decision(alice, second.item_id)
    assert [lease.pk for lease in held(alice)] == [first.pk, second.pk, third.pk], (
        "undo leaves the others where they are"
    )
    settle(alice, Assignment.objects.get(pk=second.pk), 1)
    assert [lease.pk for lease in claim_query(alice)] == [first.pk, third.pk]
    Item.objects.filter(pk=first.item_id).update(state="settled")
    assert [lease.pk for lease in claim_query(alice)] == [third.pk], "it goes on where the first was resolved meanwhile"
    assert Assignment.objects.get(pk=first.pk).state == "returned"
    settle(alice, third, 0)
    assert held(alice) == [] and Judgment.objects.filter(superseded_by=None, grade__isnull=False).count() == 2
    assert [lease.item.pair.query.text for lease in claim_query(alice)] == ["What about moons?"]


def test_what_others_hold_is_not_in_the_group_and_the_page_of_single_pairs_works_it_off(collection, alice, bob):
    tides = items_of_query(collection, 4)
    claim(bob)
    (taken,) = held(bob)
    (item, *_others) = [item for item in tides if item.pk != taken.item_id]
    make_item(item.pair, reason="split")
    items_of_query(collection, 1, "moons")
    leases = claim_query(alice)
    assert len({lease.item.pair_id for lease in leases}) == len(leases) == 3, "a pair with two open items comes once"
    assert taken.item_id not in {lease.item_id for lease in leases}
    for lease in leases:
        submit(alice, lease, 1)
    (left,) = held(alice)
    assert left.place == 0


def test_the_arms_of_a_group_are_those_that_single_claims_would_have_drawn(collection, alice):
    Collection.objects.update(arms={"shown": 1, "hidden": 1, "reveal": 0}, seed=5)
    items_of_query(collection, 8)
    expected = [desk(alice).arm_at(number) for number in range(8)]
    arms = [lease.item.arm for lease in claim_query(alice)]
    assert sorted(arms) == sorted(expected) and arms[0] == expected[0]
    assert arms.count("shown") == arms.count("hidden") == 4
    alice.refresh_from_db()
    assert alice.arms_drawn == 8


def test_a_draft_is_kept_for_its_lease_alone_and_goes_with_the_judgment(collection, alice):
    items_of_query(collection, 1)
    (lease,) = claim_query(alice)

    def keep(token: str, typed: dict[str, object] | None) -> bool:
        return assignment.in_transaction(lambda db: assignment.save_draft(db, desk(alice), lease.item_id, token, typed))

    assert not keep("another", {"comment": "x"})
    assert keep(lease.token, {"comment": "half a thought"})
    lease.refresh_from_db()
    assert lease.draft == {"comment": "half a thought"}
    assert keep(lease.token, None)
    keep(lease.token, {"comment": "half a thought"})
    settle(alice, lease, 1)
    lease.refresh_from_db()
    assert lease.draft is None
