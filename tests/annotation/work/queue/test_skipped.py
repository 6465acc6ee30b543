"""Pairs that everybody skipped are seen by admins and handed to adjudicators."""

import pytest

from annotation.models import Assignment, Membership, Role
from annotation.work.adjudication import conflicts
from annotation.work.queue.skipped import hand_over, skipped_by_all
from corpus.models import Collection, Item, Label
from judges.campaigns.selectors import collection_status
from judges.models import Campaign
from tests import queue_scene
from tests.factories import make_item, make_member, make_pair
from tests.queue_scene import claim, signed_in
from tests.reading import flat

pytestmark = pytest.mark.django_db


@pytest.fixture
def bob(collection: Collection) -> Membership:
    return make_member(collection, "bob", Role.ADJUDICATOR)


def skip(member: Membership) -> None:
    queue_scene.skip(member, claim(member), "language")


def stuck(collection: Collection) -> list[Item]:
    return list(skipped_by_all(collection))


def test_a_pair_is_stuck_when_the_last_active_one_skips_it_and_free_when_somebody_joins(collection, alice, bob):
    item = make_item(make_pair(collection))
    skip(alice)
    assert stuck(collection) == []
    skip(bob)
    assert stuck(collection) == [item]
    charlie = make_member(collection, "charlie")
    assert stuck(collection) == []
    claim(charlie)
    Membership.objects.filter(pk=alice.pk).update(is_active=False)
    assert stuck(collection) == [], "work that is open is waited for"
    Assignment.objects.filter(membership=charlie).update(state="returned")
    assert stuck(collection) == []
    Membership.objects.filter(pk=charlie.pk).update(is_active=False)
    assert stuck(collection) == [item]


def test_an_adjudicator_gets_what_they_skipped_themselves_and_reads_why(collection, alice, bob):
    item = make_item(make_pair(collection))
    skip(alice)
    skip(bob)
    assert hand_over(collection) == 1
    assert hand_over(collection) == 0
    assert [one.pk for one in conflicts.find_conflicts(bob)] == [item.pk]
    assert [(one["grade"], one["flagged"], one["note"]) for one in conflicts.list_opinions(item)] == [
        (None, False, Assignment.SkipReason.LANGUAGE.label)
    ] * 2
    conflicts.adjudicate(bob, item.pk, 1)
    assert item.pair.labels.get().grade == 1


def test_the_home_says_so_and_opens_the_pairs(collection, alice, bob):
    admin = make_member(collection, "charlie", Role.ADMIN)
    campaign = Campaign.objects.create(collection=collection, policy="debate", panel="offline")
    pair = make_pair(collection)
    make_item(pair, campaign=campaign.pk)
    for member in (alice, bob, admin):
        skip(member)
    client = signed_in(admin)
    home = client.get("/c/books/").text
    assert "skipped by every" in flat(home)
    assert f"/c/books/pairs/{pair.pk}/" in client.get("/c/books/pairs/?state=skipped").text
    answer = client.post("/c/books/pairs/skipped/adjudicate/", follow=True).text
    assert "1 pair waits" in answer
    assert "Everybody here skipped" not in answer
    assert f"/c/books/pairs/{pair.pk}/" in client.get("/c/books/pairs/?state=conflict").text


def test_the_home_counts_what_waits_from_earlier_campaigns_apart(collection):
    admin = make_member(collection, "charlie", Role.ADMIN)
    first, _second = (Campaign.objects.create(collection=collection, policy="debate", panel="offline") for _ in "12")
    pair = make_pair(collection)
    make_item(pair, campaign=first.pk)
    client = signed_in(admin)
    home = client.get("/c/books/").text
    # A pair that nobody labelled stands among those that wait for people, whichever campaign sent it.
    assert "other task" not in home
    assert collection_status(collection)["open"] == 1
    Label.objects.create(pair=pair, grade=1, origin="debate")
    assert "1 task on a pair" in flat(client.get("/c/books/").text)
    listed = flat(client.get("/c/books/pairs/?state=open").text)
    assert f"/c/books/pairs/{pair.pk}/" in listed
    assert ">waits for people</span>" in listed
