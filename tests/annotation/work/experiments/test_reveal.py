"""The reveal arm: a blind vote, then the debate, then the final vote, in queue and page."""

import re
from collections import Counter
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotation.models import Assignment, Membership
from annotation.work.queue.assignment import DecidedAlready, DecisionRefused, final_token
from annotation.work.queue.undo import undo_decision
from corpus.labels import rebuild_labels
from corpus.models import Item, Judgment, Label
from tests import queue_scene
from tests.factories import make_collection, make_item, make_member, make_pair
from tests.judging_scene import make_scene
from tests.queue_scene import claim, flag, signed_in, skip

pytestmark = pytest.mark.django_db
REVEAL = {"shown": 0, "hidden": 0, "reveal": 1}
HTMX = {"HX-Request": "true"}


@pytest.fixture
def collection():
    return make_collection("books", arms=REVEAL)


def submit(member: Membership, item: int, token: str, grade: int, **values: object) -> Assignment | None:
    Assignment.objects.filter(item=item).update(lent_at=timezone.now() - timedelta(minutes=1))
    return queue_scene.submit(member, Assignment(item_id=item, token=token), grade, **values)


def votes(item: int) -> list[tuple[str, int | None]]:
    return list(Judgment.objects.filter(item=item).order_by("pk").values_list("step", "grade"))


def let_expire(lease: Assignment) -> None:
    Assignment.objects.filter(pk=lease.pk).update(lease_until=timezone.now() - timedelta(minutes=1))


def test_the_first_vote_is_kept_then_the_final_one_settles(collection, alice):
    first, second = make_scene(collection, 2)
    lease = claim(alice)
    assert lease.item.arm == "reveal"
    again = submit(alice, first.pk, lease.token, 0, milliseconds=4000, comment="from the text")
    assert (again.pk, again.item_id, again.state) == (lease.pk, first.pk, "open")
    assert again.token == final_token(lease.token) != lease.token
    item = Item.objects.get(pk=first.pk)
    assert (item.state, item.taken, item.done) == ("open", 1, 0)
    assert not Label.objects.exists()
    following = submit(alice, first.pk, again.token, 1, milliseconds=9000)
    assert following.item_id == second.pk
    rows = Judgment.objects.filter(item=first).order_by("pk")
    assert list(rows.values_list("step", "grade", "arm", "milliseconds", "comment")) == [
        ("first", 0, "reveal:all", 4000, "from the text"),
        ("final", 1, "reveal:all", 9000, ""),
    ]
    assert Label.objects.get(pair=first.pair).grade == 1
    assert rebuild_labels(collection) == 0


def test_a_double_click_counts_once_and_a_second_tab_that_has_not_seen_the_debate_casts_no_final_vote(
    collection, alice
):
    item, other = make_scene(collection, 2)
    lease = claim(alice)
    once, stale = (submit(alice, item.pk, lease.token, 0) for _ in range(2))
    assert (stale.pk, stale.item_id, stale.token) == (once.pk, item.pk, final_token(lease.token))
    with pytest.raises(DecidedAlready, match="0 not relevant"):
        submit(alice, item.pk, lease.token, 1)
    for changed in ({"comment": "clear"}, {"spans": ((0, 7),)}):
        with pytest.raises(DecidedAlready):
            submit(alice, item.pk, lease.token, 0, **changed)
    assert votes(item.pk) == [("first", 0)]
    for _ in range(2):
        assert submit(alice, item.pk, stale.token, 1).item_id == other.pk
    with pytest.raises(DecisionRefused, match="already judged"):
        submit(alice, item.pk, lease.token, 1)
    assert votes(item.pk) == [("first", 0), ("final", 1)]
    assert Item.objects.get(pk=item.pk).done == 1


def test_undo_takes_back_the_final_vote_then_the_first(collection, alice):
    item, other = make_scene(collection, 2)
    lease = claim(alice)
    once = submit(alice, item.pk, lease.token, 0)
    submit(alice, item.pk, once.token, 1)
    undo_decision(alice, item.pk)
    own = Assignment.objects.get(pk=lease.pk)
    assert (own.state, own.first.grade, own.judgment.grade) == ("open", 0, None)
    assert Assignment.objects.get(item=other).state == "returned"
    assert not Label.objects.exists()
    undo_decision(alice, item.pk)
    own.refresh_from_db()
    assert (own.state, own.first.grade) == ("open", None)
    once = submit(alice, item.pk, own.token, 1)
    submit(alice, item.pk, once.token, 0)
    assert votes(item.pk) == [
        ("first", 0), ("final", 1), ("final", None), ("first", None), ("first", 1), ("final", 0),
    ]  # fmt: skip
    firsts = Judgment.objects.filter(item=item, step="first", grade__isnull=False)
    assert list(firsts.order_by("pk").values_list("grade", "arm")) == [(0, "reveal:all"), (1, "reveal:seen")]
    assert Label.objects.get(pair=item.pair).grade == 0
    assert rebuild_labels(collection) == 0
    item.refresh_from_db()
    assert (item.taken, item.done, item.state) == (1, 1, "settled")


def test_a_final_token_counts_neither_before_the_first_vote_nor_after_an_undo(collection, alice):
    (item,) = make_scene(collection, 1)
    lease = claim(alice)
    with pytest.raises(DecisionRefused, match="out of date"):
        submit(alice, item.pk, final_token(lease.token), 1)
    once = submit(alice, item.pk, lease.token, 0)
    undo_decision(alice, item.pk)
    for old in (lease.token, once.token):
        with pytest.raises(DecisionRefused, match="out of date"):
            submit(alice, item.pk, old, 1)
    assert votes(item.pk) == [("first", 0), ("first", None)]


def test_a_lease_that_ran_out_after_the_first_vote_goes_on_with_the_debate(collection, alice, bob):
    (item,) = make_scene(collection, 1)
    lease = claim(alice)
    once = submit(alice, item.pk, lease.token, 0)
    let_expire(once)
    taken = claim(bob)
    assert taken.item_id == item.pk
    with pytest.raises(DecisionRefused, match="was reassigned"):
        submit(alice, item.pk, once.token, 1)
    let_expire(taken)
    back = claim(alice)
    assert (back.pk, back.first.grade) == (lease.pk, 0)
    submit(alice, item.pk, back.token, 1)
    assert votes(item.pk) == [("first", 0), ("final", 1)]
    assert Item.objects.get(pk=item.pk).taken == 1


def test_a_late_first_vote_counts_while_nobody_else_has_the_item_nor_its_author_another(collection, alice):
    item, other = make_scene(collection, 2)
    lease = claim(alice)
    skip(alice, lease)
    assert claim(alice).item_id == other.pk
    # As if somebody's claim had found that it ran out.
    Assignment.objects.filter(pk=lease.pk).update(state="returned")
    with pytest.raises(DecisionRefused, match="another pair was"):
        submit(alice, item.pk, lease.token, 1)
    Assignment.objects.filter(item=other).delete()
    again = submit(alice, item.pk, lease.token, 1)
    assert (again.pk, again.state, again.token) == (lease.pk, "open", final_token(lease.token))
    assert again.lease_until > timezone.now()
    assert Item.objects.get(pk=item.pk).taken == 1
    submit(alice, item.pk, again.token, 1)
    assert votes(item.pk) == [("first", 1), ("final", 1)]
    assert Item.objects.get(pk=item.pk).state == "settled"


def test_skip_and_flag_work_after_the_first_vote_and_undo_leads_back_to_it(collection, alice):
    (item,) = make_scene(collection, 1)
    lease = claim(alice)
    once = submit(alice, item.pk, lease.token, 0)
    flag(alice, once, "odd")
    assert Item.objects.get(pk=item.pk).state == "conflict"
    undo_decision(alice, item.pk)
    own = Assignment.objects.get(pk=lease.pk)
    assert (own.state, own.first.grade) == ("open", 0)
    assert Item.objects.get(pk=item.pk).state == "open"
    skip(alice, own)
    undo_decision(alice, item.pk)
    own.refresh_from_db()
    submit(alice, item.pk, own.token, 0)
    assert votes(item.pk) == [("first", 0), ("final", 0)]


def test_both_steps_cost_at_most_six_statements(collection, alice):
    make_scene(collection, 3, overlap=2)
    client = signed_in(alice)
    page = client.post("/c/books/judge/next/", headers=HTMX).text
    for grade in (0, 1):
        with CaptureQueriesContext(connection) as counted:
            page = client.post("/c/books/judge/submit/", {**fields(page), "grade": grade}, headers=HTMX).text
        mine = [q["sql"] for q in counted if not q["sql"].startswith(("SAVEPOINT", "RELEASE"))]
        assert len(mine) <= 6
    assert Counter(Judgment.objects.values_list("step", flat=True)) == {"first": 1, "final": 1}


def fields(page: str) -> dict[str, str]:
    return {name: re.search(rf'name="{name}" value="([^"]*)"', page)[1] for name in ("item", "token")}


def test_the_page_hides_the_debate_until_the_first_vote_is_in(collection, alice):
    make_scene(collection, 2)
    client = signed_in(alice)
    page = client.post("/c/books/judge/next/", headers=HTMX).text
    assert 'data-step="first"' in page and 'id="debate"' not in page
    revealed = client.post(
        "/c/books/judge/submit/", {**fields(page), "grade": 0, "comment": "short"}, headers=HTMX
    ).text
    assert fields(revealed)["item"] == fields(page)["item"]
    assert "The opponent stretches" in revealed
    assert "first judgment: 0" in revealed
    assert ">short</textarea>" in revealed
    assert "Saved." in revealed
    assert re.search(r'id="undo".*?value="(\d+)"', revealed.replace("\n", ""))[1] == fields(page)["item"]
    hidden = client.post("/c/books/judge/undo/", {"item": fields(page)["item"]}, headers=HTMX).text
    assert "opponent" not in hidden
    assert "Undone" in hidden
    assert Judgment.objects.filter(grade=None, step="first").count() == 1


def test_audits_are_judged_blind_and_draw_no_arm_and_a_reserved_item_is_lent_to_those_it_is_kept_for(
    alice, bob, collection
):
    item = make_item(make_pair(collection), reason="audit", reserved=True)
    item.reserved_for.create(membership=bob)
    assert claim(alice) is None
    submit(bob, item.pk, claim(bob).token, 1)
    assert list(Judgment.objects.values_list("step", "arm")) == [("final", "hidden")]
    bob.refresh_from_db()
    assert bob.arms_drawn == 0


def test_the_second_person_on_an_item_gets_the_arm_of_the_first():
    collection = make_collection("birds", arms={"shown": 1, "hidden": 1, "reveal": 0}, overlap=2)
    people = [make_member(collection, name) for name in ("alice", "bob")]
    for _ in range(6):
        make_item(make_pair(collection), overlap=2)
    for _ in range(6):
        leases = [claim(member) for member in people]
        assert leases[0].item_id == leases[1].item_id
        for member, lease in zip(people, leases, strict=True):
            submit(member, lease.item_id, lease.token, 1)
    by_item = {item: set() for item in Item.objects.values_list("pk", flat=True)}
    for item, arm in Judgment.objects.values_list("item", "arm"):
        by_item[item].add(arm)
    assert all(len(arms) == 1 for arms in by_item.values())
    assert Counter(arm for arms in by_item.values() for arm in arms) == {"shown:all": 3, "hidden": 3}
    assert sum(Membership.objects.values_list("arms_drawn", flat=True)) == 6


def test_what_was_lent_before_an_experiment_is_no_part_of_it(alice, bob, collection):
    collection.arms = {"shown": 1, "hidden": 0, "reveal": 0}
    collection.save()
    before, after = make_item(make_pair(collection), overlap=2), make_item(make_pair(collection), overlap=2)
    alice = Membership.objects.get(pk=alice.pk)
    assert claim(alice).item.arm == ""
    collection.arms = REVEAL
    collection.save()
    bob = Membership.objects.get(pk=bob.pk)
    lease = claim(bob)
    assert (lease.item_id, lease.item.arm) == (before.pk, "")
    assert submit(bob, before.pk, lease.token, 1).item_id == after.pk
    assert list(Judgment.objects.values_list("step", "arm")) == [("final", "shown:all")]
    assert Item.objects.get(pk=after.pk).arm == "reveal"
