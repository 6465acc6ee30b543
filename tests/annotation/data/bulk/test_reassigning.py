"""Pairs reserved for a member by a bulk act: theirs first, nobody else's until they are released."""

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from annotation.models import Assignment, AuditEntry, Membership, ReservedFor, Role
from annotation.models.pair_table import BulkAct
from annotation.people.accounts import members
from annotation.work.quality_control import exclusion
from annotation.work.queue import assignment, undo
from annotation.work.queue.annotators import SubmittedAnswer
from corpus.models import Assessor, Collection, Item, Judgment, Label
from tests.annotation.data.bulk.test_bulk_acts import do, plan
from tests.annotation.work.quality_control.test_set_aside import judge
from tests.factories import make_collection, make_item, make_member, make_pair
from tests.queue_scene import claim, desk, skip
from tests.stages import crossed

pytestmark = pytest.mark.django_db


@pytest.fixture
def bob(books):
    return make_member(books, "bob")


def give(client: Client, member: Membership, items: list[Item]) -> str:
    return do(client, "reassign", option=str(member.pk), pair=[item.pair_id for item in items])


def held_by(member):
    """The task that a member gets next."""
    lease = claim(member)
    assert lease is not None
    return lease


def options(client: Client, items: list[Item]) -> dict[str, str]:
    page = client.get(plan(client, "reassign", pair=[item.pair_id for item in items])).text
    return {said: value for value, said in re.findall(r'<option value="(\w+)">([^<]*)</option>', page)}


def test_pairs_reserved_for_a_member_come_to_them_first_and_to_nobody_else(books, alice, bob, charlie):
    items = [make_item(make_pair(books), priority=number / 10) for number in range(5)]
    held = held_by(bob)
    assert held.item_id == items[0].pk
    address = give(charlie, alice, [items[0], items[4]])
    held.refresh_from_db()
    assert held.state == Assignment.State.RETURNED
    assert "to alice" in charlie.get("/c/books/pairs/actions/").text
    entry = AuditEntry.objects.get(act="pairs.returned")
    assert entry.concerns == alice.user and entry.details["pairs"] == 2
    assert {lease.item_id for lease in judge(alice, [1, 0])} == {items[0].pk, items[4].pk}
    assert {lease.item_id for lease in judge(bob, [1, 1])} < {item.pk for item in items[1:4]}
    assert "Undo" in charlie.get(address).text


SENDS = {
    "grade": lambda db, member, held: assignment.submit_judgment(
        db, desk(member), SubmittedAnswer(held.item_id, held.token, 1)
    ),
    "flag": lambda db, member, held: assignment.flag(db, desk(member), held.item_id, held.token, "look"),
    "skip": lambda db, member, held: assignment.skip(db, desk(member), held.item_id, held.token, "language"),
}
WAYS = [("alice", "held"), ("anyone", "held"), ("alice", "ran out"), ("anyone", "ran out")]


@pytest.mark.parametrize(("sends", "way"), crossed(SENDS, WAYS))
def test_what_a_former_holder_still_sends_after_a_reassignment_changes_nothing(books, alice, bob, charlie, sends, way):
    item, other = [make_item(make_pair(books), priority=n) for n in range(2)]
    held = held_by(bob)
    assert held.item_id == item.pk
    if way[1] == "ran out":
        Assignment.objects.update(state=Assignment.State.RETURNED, ended_at=timezone.now())
        Item.objects.filter(pk=item.pk).update(taken=0)
    do(charlie, "reassign", option=str(alice.pk) if way[0] == "alice" else "anyone", pair=[item.pair_id])
    with pytest.raises(assignment.DecisionRefused, match="reassigned"):
        assignment.in_transaction(lambda db: SENDS[sends](db, bob, held))
    item.refresh_from_db()
    assert (item.state, item.taken, item.done) == ("open", 0, 0)
    assert not Label.objects.exists() and not Judgment.objects.exists()
    # Whose it is now judges it, and it is their label.
    assert {lease.item_id for lease in judge(alice, [0, 1])} == {item.pk, other.pk}
    assert Label.objects.get(pair=item.pair).grade == 0


def test_nobody_else_gets_a_reserved_pair_until_undo_releases_it_or_it_goes_on_to_another(books, alice, bob, charlie):
    item = make_item(make_pair(books), priority=0.25)
    address = give(charlie, alice, [item])
    assert claim(bob) is None
    assert charlie.post(f"{address}undo/").status_code == 302
    item.refresh_from_db()
    assert (item.reserved, item.priority, ReservedFor.objects.count()) == (False, 0.25, 0)
    assert charlie.post(f"{address}undo/").status_code == 422, "it is undone once"
    first = give(charlie, alice, [item])
    give(charlie, bob, [item])
    assert claim(alice) is None
    assert list(ReservedFor.objects.values_list("membership", flat=True)) == [bob.pk]
    assert charlie.post(f"{first}undo/").status_code == 302
    assert claim(alice) is None, "an earlier act does not undo a later one"
    address = do(charlie, "reassign", option="anyone", pair=item.pair_id)
    assert BulkAct.objects.latest("pk").affected == 1
    assert "Undo" not in charlie.get(address).text and charlie.post(f"{address}undo/").status_code == 422
    assert held_by(alice).item_id == item.pk


def test_a_member_never_gets_a_pair_that_they_met_nor_two_tasks_of_one_pair(books, alice, bob, charlie):
    done, skipped, held, imported, new = [make_item(make_pair(books), priority=n) for n in range(5)]
    judge(alice, [1])
    skip(alice, held_by(alice), "language")
    mine = held_by(alice)
    assert mine.item_id == held.pk
    Judgment.objects.create(pair=imported.pair, assessor=alice.assessor, grade=1, guideline=0)
    again = make_item(done.pair, "audit", priority=9)
    second = make_item(new.pair, "audit", priority=9)
    everything = [done, skipped, held, imported, new]
    offered = options(charlie, everything)
    assert offered["alice (1 pair)"] == str(alice.pk) and offered["bob (5 pairs)"] == str(bob.pk)
    give(charlie, alice, everything)
    assert list(ReservedFor.objects.values_list("item", flat=True)) == [new.pk]
    mine.refresh_from_db()
    assert mine.state == Assignment.State.OPEN, "what the member has stays with them"
    free = set(Item.objects.filter(state="open", reserved=False).values_list("pk", flat=True))
    assert {again.pk, second.pk} <= free


def test_the_other_places_of_a_pair_wait_until_the_member_did_theirs_or_skips_and_not_for_a_lease_that_ran_out(
    books, alice, bob, charlie
):
    item, other, last = (make_item(make_pair(books), overlap=places) for places in (2, 1, 1))
    give(charlie, alice, [item])
    Item.objects.exclude(pk=item.pk).update(state="withdrawn")
    assert claim(bob) is None
    judge(alice, [1])
    judge(bob, [1])
    item.refresh_from_db()
    assert (item.state, item.taken, item.done) == ("settled", 2, 2)
    Item.objects.filter(pk=other.pk).update(state="open")
    give(charlie, alice, [other])
    skip(alice, held_by(alice), "language")
    assert claim(alice) is None and held_by(bob).item_id == other.pk
    judge(bob, [1])
    Item.objects.filter(pk=last.pk).update(state="open")
    give(charlie, alice, [last])
    lease = held_by(alice)
    Assignment.objects.filter(pk=lease.pk).update(lease_until=timezone.now() - timedelta(minutes=1))
    assert claim(bob) is None
    lease.refresh_from_db()
    assert lease.state == Assignment.State.RETURNED and held_by(alice).item_id == last.pk


@pytest.mark.parametrize("leaves", ["removed", "paused", "closed"])
def test_what_was_reserved_for_somebody_who_leaves_goes_back_to_all(books, alice, bob, charlie, leaves):
    items = [make_item(make_pair(books)) for _ in range(2)]
    give(charlie, alice, items)
    assert claim(alice) is not None and claim(bob) is None
    by = Membership.objects.get(role=Role.ADMIN).user
    if leaves == "removed":
        members.set_active(membership=alice, active=False, by=by)
    elif leaves == "paused":
        exclusion.pause(membership=alice, by=by)
    else:
        undo.end_lease(alice)
    assert not ReservedFor.objects.exists()
    assert len(judge(bob, [1, 1])) == 2


def test_only_members_who_can_judge_are_offered(books, alice, bob, charlie):
    dora, erin, frank = (make_member(books, name) for name in ("dora", "erin", "frank"))
    Collection.objects.update(qualification=True)
    Membership.objects.filter(pk__in=[alice.pk, dora.pk, erin.pk]).update(qualified_at=timezone.now())
    Membership.objects.filter(pk=dora.pk).update(paused_at=timezone.now())
    Membership.objects.filter(pk=erin.pk).update(is_active=False)
    item = make_item(make_pair(books))
    assert set(options(charlie, [item])) == {"anyone (0 pairs)", "alice (1 pair)", "charlie (1 pair)"}
    stranger = make_member(make_collection("other"), "gina")
    for refused in (bob, dora, erin, frank, stranger):
        address = plan(charlie, "reassign", pair=item.pair_id)
        response = charlie.post(f"{address}run/", {"option": str(refused.pk)})
        assert response.status_code == 422 and "of the options" in response.text
    assert not ReservedFor.objects.exists()


def test_pairs_that_wait_for_nobody_and_those_of_a_study_stay_as_they_are(books, alice, charlie):
    settled = make_item(make_pair(books), state="settled")
    study = make_item(make_pair(books), "study", reserved=True)
    kept = make_item(make_pair(books), reserved=True)  # held back while a study runs
    free = make_item(make_pair(books))
    give(charlie, alice, [settled, study, kept, free])
    assert list(ReservedFor.objects.values_list("item", flat=True)) == [free.pk]
    do(charlie, "reassign", option="anyone", pair=[study.pair_id, kept.pair_id, free.pair_id])
    assert set(Item.objects.filter(reserved=True).values_list("pk", flat=True)) == {study.pk, kept.pk}
    assert Assessor.objects.filter(collection=books).exists()


def _claim_apart(member):
    """Claim on a connection of its own, as another web process does."""
    try:
        lease = claim(member)
        return lease and lease.item_id
    finally:
        connection.close()


@pytest.mark.django_db(transaction=True)
def test_two_people_who_claim_at_once_never_share_nor_swap_what_is_reserved(books, alice, bob, charlie):
    items = [make_item(make_pair(books)) for _ in range(16)]
    hers, rest = items[::2], {item.pk for item in items[1::2]}
    address = plan(charlie, "reassign", pair=[item.pair_id for item in hers])
    with ThreadPoolExecutor(3) as pool:
        racing = [pool.submit(_claim_apart, member) for member in (alice, bob)]
        assert charlie.post(f"{address}run/", {"option": str(alice.pk)}).status_code == 302
        assert all(one.result() for one in racing)
        kept = set(ReservedFor.objects.values_list("item", flat=True))
        held = dict(Assignment.objects.filter(state="open").values_list("membership", "item"))
        # She may have claimed after the act, and then holds what waits for her.
        assert held.get(bob.pk) not in kept and len(set(held.values())) == len(held)
        for _ in range(8):
            for lease in Assignment.objects.filter(state="open").select_related("membership"):
                skip(lease.membership, lease, "language")
            for one in [pool.submit(_claim_apart, member) for member in (alice, bob)]:
                one.result()
            for lease in Assignment.objects.filter(state="open"):
                assert lease.item_id not in kept or lease.membership_id == alice.pk or not lease.item.reserved
    # What he had claimed before the act was taken from him, and may still wait for her.
    taken_by_bob = Assignment.objects.filter(membership=bob).exclude(state="returned").values_list("item", flat=True)
    still = set(Item.objects.filter(reserved=True).values_list("pk", flat=True))
    assert still.isdisjoint(taken_by_bob) and rest
