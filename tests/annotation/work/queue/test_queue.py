"""The queue on a real PostgreSQL: claims, leases, submits, skips, flags, undo; and what everybody skipped."""

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from urllib.parse import urlsplit

import psycopg
import pytest
from django.db import connection
from django.http import Http404
from django.utils import timezone

from annotation.models import Assignment, Membership, Role
from annotation.people.accounts.members import set_active
from annotation.work.adjudication import conflicts
from annotation.work.judging import submitting
from annotation.work.queue import assignment
from annotation.work.queue.annotators import AnnotatorContext, SubmittedAnswer
from annotation.work.queue.assignment import DecisionRefused
from annotation.work.queue.skipped import hand_over, skipped_by_all
from annotation.work.queue.undo import undo_decision
from corpus.labels import rebuild_labels
from corpus.models import Collection, ExportRecord, Item, Judgment, Label
from judges.campaigns.selectors import collection_status
from judges.models import Campaign, Tally
from tests.factories import make_collection, make_item, make_member, make_pair
from tests.judging_clients import Annotator, run
from tests.judging_scene import make_scene
from tests.plugin_browser import session_of
from tests.queue_scene import claim, flag, signed_in, skip, submit
from tests.reading import flat

pytestmark = pytest.mark.django_db


def expire(lease: Assignment) -> None:
    Assignment.objects.filter(pk=lease.pk).update(lease_until=timezone.now() - timedelta(minutes=1))


@pytest.fixture
def bob(collection):
    return make_member(collection, "bob", Role.ADJUDICATOR)


@pytest.fixture
def charlie(collection):
    return make_member(collection, "charlie", Role.ADJUDICATOR)


def items(collection, count: int, **values: object) -> list[Item]:
    return [make_item(make_pair(collection), **values) for _ in range(count)]


def test_a_claim_lends_the_first_item_and_asking_again_gives_the_same(collection, alice):
    later, first = items(collection, 2)
    Item.objects.filter(pk=first.pk).update(priority=-1)
    lease = claim(alice)
    assert lease.item_id == first.pk
    assert claim(alice).pk == lease.pk
    assert Item.objects.get(pk=first.pk).taken == 1
    assert Item.objects.get(pk=later.pk).taken == 0
    assert submit(alice, lease, 1).item_id == later.pk
    (urgent,) = items(collection, 1, priority=-5.0)
    assert submit(alice, claim(alice), 1).item_id == urgent.pk, "it came before the watermark"


@pytest.mark.django_db(transaction=True)
def test_two_claims_of_one_member_at_the_same_moment_are_one_lease(collection, alice):
    items(collection, 20)
    barrier = Barrier(6)

    def ask(_number: int) -> int | None:
        with connect() as db:
            barrier.wait()
            return inside(db, submitting.claim, AnnotatorContext.of(alice))

    with ThreadPoolExecutor(6) as pool:
        assert len(set(pool.map(ask, range(6)))) == 1
    assert Assignment.objects.filter(membership=alice).count() == 1


def test_submit_settles_labels_and_claims_the_next(collection, alice):
    campaign = Campaign.objects.create(collection=collection, policy="debate", panel="offline")
    first, second = items(collection, 2, campaign=campaign.pk)
    lent = claim(alice)
    Assignment.objects.filter(pk=lent.pk).update(lent_at=timezone.now() - timedelta(minutes=1))
    lease = submit(alice, lent, 1, comment="clear", milliseconds=1234, idle=234, spans=((4, 9), (12, 20)))
    assert lease.item_id == second.pk
    item = Item.objects.get(pk=first.pk)
    assert (item.state, item.done, item.taken) == ("settled", 1, 1)
    judgment = Judgment.objects.get(item=first)
    assert (judgment.grade, judgment.step, judgment.arm, judgment.comment, judgment.milliseconds) == (
        1, "final", "shown:all", "clear", 1234,
    )  # fmt: skip
    assert (judgment.idle_milliseconds, judgment.spans) == (234, [[4, 9], [12, 20]])
    assert Label.objects.get(pair=first.pair).origin == "people"
    assert sum(Tally.objects.filter(campaign=campaign, key="settled").values_list("value", flat=True)) == 1
    assert submit(alice, lease, 0) is None


def test_the_same_token_again_answers_the_same_and_counts_once_in_six_statements(collection, alice, monkeypatch):
    items(collection, 3)
    lease = claim(alice)
    following = submit(alice, lease, 1)
    assert submit(alice, lease, 1).pk == following.pk
    with pytest.raises(assignment.DecidedAlready, match="1 relevant"):
        submit(alice, lease, 0)
    assert list(Judgment.objects.values_list("grade", flat=True)) == [1]
    counted = []
    plain = assignment.fetch_tuples
    monkeypatch.setattr(assignment, "fetch_tuples", lambda *args: counted.append(args) or plain(*args))
    Assignment.objects.filter(pk=following.pk).update(lent_at=timezone.now() - timedelta(seconds=5))
    submit(alice, following, 1, milliseconds=3_600_000, idle=7_200_000)
    assert 3 <= len(counted) <= 6
    judgment = Judgment.objects.get(item=following.item)
    assert 5_000 <= judgment.milliseconds < 30_000, "nobody was on a page for longer than the lease"
    assert judgment.idle_milliseconds == judgment.milliseconds


def test_a_tie_goes_to_an_adjudicator_who_did_not_judge_it(collection, alice, bob, charlie):
    (item,) = items(collection, 1, overlap=2)
    submit(alice, claim(alice), 1)
    submit(bob, claim(bob), 0, comment="off topic")
    assert Item.objects.get(pk=item.pk).state == "conflict"
    assert not Label.objects.exists()
    assert not conflicts.find_conflicts(bob).exists()
    assert conflicts.find_conflicts(charlie).get().pk == item.pk
    assert {(o["grade"], o["comment"]) for o in conflicts.list_opinions(item)} == {(1, ""), (0, "off topic")}
    with pytest.raises(DecisionRefused):
        conflicts.adjudicate(bob, item.pk, 1)
    conflicts.adjudicate(charlie, item.pk, 0)
    conflicts.adjudicate(charlie, item.pk, 0)
    label = Label.objects.get(pair=item.pair)
    assert (label.grade, label.origin) == (0, "adjudicator")
    assert Judgment.objects.filter(step="adjudication").count() == 1


def test_a_flag_goes_to_the_adjudicators_and_others_may_still_finish(collection, alice, bob, charlie):
    (item,) = items(collection, 1, overlap=3)
    lease, other = claim(alice), claim(bob)
    flag(alice, lease, "two questions")
    assert Item.objects.get(pk=item.pk).state == "conflict"
    assert claim(charlie) is None
    submit(bob, other, 1)
    assert Item.objects.get(pk=item.pk).state == "conflict"
    assert [(o["grade"], o["note"]) for o in conflicts.list_opinions(item) if o["flagged"]] == [(None, "two questions")]


def test_a_skip_returns_the_item_to_the_others_and_never_to_the_skipper_but_by_undo(collection, alice, bob):
    item, _second = items(collection, 2)
    lease = claim(alice)
    skip(alice, lease, "language")
    returned = Item.objects.get(pk=item.pk)
    assert returned.taken == 0 and returned.place != item.place
    undo_decision(alice, item.pk)
    lease = claim(alice)
    assert lease.item_id == item.pk
    flag(alice, lease, "odd")
    undo_decision(alice, item.pk)
    fresh = Item.objects.get(pk=item.pk)
    assert (fresh.state, fresh.taken, fresh.done) == ("open", 1, 0)
    skip(alice, claim(alice), "language")
    assert submit(alice, claim(alice), 1) is None
    assert claim(bob).item_id == item.pk


def test_an_expired_lease_returns_to_the_queue_and_a_late_answer_still_counts_while_there_is_room(
    collection, alice, bob
):
    item, *_ = items(collection, 1)
    lease = claim(alice)
    expire(lease)
    assert claim(bob).item_id == item.pk
    assert Assignment.objects.get(pk=lease.pk).state == "returned"
    with pytest.raises(DecisionRefused, match="reassigned"):
        submit(alice, lease, 1)
    expire(Assignment.objects.get(membership=bob))
    assignment.in_transaction(lambda db: assignment.fetch_dicts(db, assignment.sql.EXPIRE, membership=alice.pk))
    submit(alice, lease, 1)
    assert Item.objects.get(pk=item.pk).state == "settled"
    with pytest.raises(DecisionRefused, match="resolved"):
        submit(bob, Assignment.objects.get(membership=bob), 0)
    assert Item.objects.get(pk=item.pk).taken == 1


def test_an_item_whose_lease_ran_out_is_not_lost_for_a_lone_annotator_but_comes_after_all_new_ones(
    collection, alice, bob
):
    first, second = items(collection, 2)
    lease = claim(alice)
    expire(lease)
    assert claim(alice).pk == lease.pk, "it ran out unnoticed"
    lease.refresh_from_db()
    assert lease.lease_until > timezone.now()
    expire(lease)
    assignment.in_transaction(lambda db: assignment.fetch_dicts(db, assignment.sql.EXPIRE, membership=bob.pk))
    lease = claim(alice)
    assert lease.item_id == second.pk
    assert submit(alice, lease, 1).item_id == first.pk


def test_undo_reopens_the_same_lease_withdraws_and_gives_the_next_one_back(collection, alice):
    campaign = Campaign.objects.create(collection=collection, policy="debate", panel="offline")
    first, second = items(collection, 2, campaign=campaign.pk)
    lease = claim(alice)
    following = submit(alice, lease, 1, comment="sure")
    undo_decision(alice, first.pk)
    again = claim(alice)
    assert again.pk == lease.pk
    assert again.token != lease.token
    assert not Label.objects.exists()
    assert Tally.objects.get(campaign=campaign, key="settled").value == 0
    given_back = Item.objects.get(pk=second.pk)
    assert given_back.taken == 0
    assert given_back.place != following.item.place
    with pytest.raises(DecisionRefused, match="out of date"):
        submit(alice, lease, 1)
    assert submit(alice, again, 0).item_id == second.pk
    chain = list(Judgment.objects.order_by("pk").values_list("grade", "supersedes__grade"))
    assert chain == [(1, None), (None, 1), (0, None)]
    assert Label.objects.get().grade == 0
    assert rebuild_labels(collection) == 0
    assert Assignment.objects.filter(membership=alice, item=first).count() == 1


def test_undo_is_refused_when_something_used_the_judgment(collection, alice, bob, charlie):
    (item,) = items(collection, 1, overlap=2)
    submit(alice, claim(alice), 1)
    submit(bob, claim(bob), 1)
    with pytest.raises(DecisionRefused, match="later judgment"):
        undo_decision(alice, item.pk)
    undo_decision(bob, item.pk)
    submit(bob, claim(bob), 0)
    export = ExportRecord.objects.create(collection=collection, export=1)
    with pytest.raises(DecisionRefused, match="export"):
        undo_decision(bob, item.pk)
    export.delete()
    conflicts.adjudicate(charlie, item.pk, 0)
    with pytest.raises(DecisionRefused, match="adjudicator"):
        undo_decision(bob, item.pk)
    with pytest.raises(Http404):
        undo_decision(charlie, item.pk)


@pytest.mark.django_db(transaction=True)
def test_eight_raw_clients_race_without_deadlock_and_nothing_is_taken_twice(collection):
    """Eight psycopg connections submit and claim as fast as they can; every statement is the web's own."""
    items(collection, 40, overlap=3)
    desks = [AnnotatorContext.of(make_member(collection, f"annotator{n}")) for n in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(_judge_all, desks))
    assert set(Item.objects.values_list("taken", "done")) == {(3, 3)}
    assert set(Item.objects.values_list("state", flat=True)) <= {"settled", "conflict"}
    assert Judgment.objects.count() == 40 * 3
    per_pair = Counter(Judgment.objects.values_list("item_id", "assessor_id"))
    assert set(per_pair.values()) == {1}
    assert rebuild_labels(collection) == 0


def connect() -> psycopg.Connection:
    """A raw client of the test's database."""
    settings = connection.settings_dict
    host, port = settings["HOST"], settings["PORT"] or None
    return psycopg.connect(host=host, port=port, dbname=settings["NAME"], user=settings["USER"], autocommit=True)


def inside(db: psycopg.Connection, call: Callable, *values: object) -> int | None:
    """In a transaction that is tried again where others were in the way."""

    def once() -> int | None:
        with db.transaction():
            return call(db, *values)

    return assignment.retry_on_conflict(once)


def _judge_all(desk: AnnotatorContext) -> None:
    with connect() as db:
        idle = 0
        while idle < 5:
            lent = inside(db, submitting.claim, desk)
            if lent is None:
                idle += 1
                time.sleep(0.02)
            while lent is not None:
                (lease,) = assignment.fetch_dicts(
                    db, "SELECT item_id, token FROM annotation_assignment WHERE id = %(lent)s", lent=lent
                )
                answer = SubmittedAnswer(lease["item_id"], lease["token"], (lease["item_id"] + desk.membership) % 2)
                lent = inside(db, submitting.submit, desk, answer)


def test_what_a_deactivated_member_holds_goes_back_at_once(collection, alice, bob):
    (item,) = items(collection, 1)
    lease = claim(alice)
    assert claim(bob) is None
    set_active(membership=alice, active=False)
    assert claim(bob).item_id == item.pk
    lease.refresh_from_db()
    assert lease.state == "returned"


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_thirty_two_annotators_share_a_queue(live_site, instance):
    collection = make_collection("books", overlap=3)
    items = make_scene(collection, 60, overlap=3)
    port = urlsplit(live_site).port
    members = [make_member(collection, f"annotator-{number}") for number in range(32)]
    people = [
        Annotator(port, "books", session_of(member.user), scheme="http", repeat=1 + number % 2)
        for number, member in enumerate(members)
    ]
    run(people, seconds=60)
    # A claim skips what another transaction holds, so somebody may have left a moment too early: one more walk.
    late = [Annotator(port, "books", person.session, scheme="http") for person in people]
    run(late, seconds=60)

    assert [walk.problems for walk in people + late if walk.problems] == []
    assert set(Item.objects.values_list("taken", "done", "overlap")) == {(3, 3, 3)}
    stored = Counter(Judgment.objects.values_list("item_id", "assessor_id"))
    assert set(stored.values()) == {1}
    assert len(stored) == len(items) * 3
    walks = [(member, walk) for walked in (people, late) for member, walk in zip(members, walked, strict=True)]
    items_of = dict(Assignment.objects.values_list("public_id", "item_id"))
    assert {(items_of[item], member.assessor_id) for member, walk in walks for item in walk.judged} == set(stored)
    settled = Item.objects.filter(state="settled").count()
    assert sum(Tally.objects.filter(key="settled").values_list("value", flat=True)) == settled
    assert rebuild_labels(collection) == 0


def skip_next(member: Membership) -> None:
    skip(member, claim(member), "language")


def stuck(collection: Collection) -> list[Item]:
    return list(skipped_by_all(collection))


def test_a_pair_is_stuck_when_the_last_active_one_skips_it_and_free_when_somebody_joins(collection, alice, bob):
    item = make_item(make_pair(collection), overlap=2)
    skip_next(alice)
    assert stuck(collection) == []
    skip_next(bob)
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
    skip_next(alice)
    skip_next(bob)
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
        skip_next(member)
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
