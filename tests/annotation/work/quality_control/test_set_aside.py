"""Pausing people, setting judgments aside and bringing them back: everything leaves, everything returns."""

from datetime import timedelta

import pytest
from django.db import DatabaseError, connection, transaction

from annotation.agreement.grade_matrix import known_assessors, load_grade_matrix
from annotation.agreement.report import agreement_report
from annotation.exports.rows import JUDGMENTS
from annotation.models import Assignment, Membership, Role
from annotation.models.quality_control import Batch, Consent, GoldPair, JudgmentExclusion
from annotation.quality.label_quality.annotators import measure_annotators
from annotation.work.adjudication import conflicts
from annotation.work.quality_control import consent, exclusion, gold
from annotation.work.queue.assignment import DecisionRefused
from annotation.work.queue.undo import undo_decision
from corpus.collections.removal import delete_collection
from corpus.errors import BadInput
from corpus.labels import rebuild_labels
from corpus.models import Item, Judgment, Label
from judges.costs import counters
from tests.factories import client_of, make_collection, make_item, make_member, make_pair
from tests.judging_scene import make_scene
from tests.queue_scene import claim, skip, submit

pytestmark = pytest.mark.django_db


def judge(member: Membership, grades: list[int]) -> list[Assignment]:
    done = []
    for grade in grades:
        lease = claim(member)
        assert lease is not None
        submit(member, lease, grade, comment="why", milliseconds=1200)
        done.append(lease)
    return done


def figures(collection) -> dict[str, object]:
    """Every figure that people's judgments enter."""
    known = known_assessors(collection)
    found = load_grade_matrix(collection, known)
    return {
        "labels": sorted(Label.objects.values_list("pair", "grade", "origin")),
        "assessors": [(one.name, n) for one, n in zip(known, found.counts(), strict=True)],
        "grades": found.grades.tolist(),
        "people": [(p.name, p.judged, p.majority, p.seconds, p.prevalence) for p in measure_annotators(collection)],
        "agreement": repr(agreement_report(collection, known).measures.fleiss) if len(known) > 1 else "",
        "export": exported(collection),
    }


def exported(collection) -> list[tuple[object, ...]]:
    """The rows of the export `judgments`."""
    with connection.cursor() as cursor:
        none = {key: [] for key in ("campaigns", "again_campaigns", "again_places", "again_numbers")}
        cursor.execute(JUDGMENTS, {"collection": collection.pk, "relevant_from": 1, **none})
        return cursor.fetchall()


@pytest.fixture
def collection():
    return make_collection("books", overlap=2)


@pytest.fixture
def items(collection):
    return [make_item(make_pair(collection), overlap=2) for _ in range(4)]


def test_set_aside_judgments_leave_every_figure_and_come_back_when_that_is_reversed(collection, alice, bob, items):
    judge(bob, [1, 0, 1, 0])
    without_alice = figures(collection)
    judge(alice, [1, 0, 0, 0])
    with_alice = figures(collection)
    assert with_alice["labels"] != without_alice["labels"]
    rows = Judgment.objects.count()
    act = exclusion.exclude_judgments(membership=alice, by=None, note="asleep")
    assert figures(collection) == without_alice
    assert rebuild_labels(collection) == 0
    assert [item.state for item in Item.objects.order_by("pk")] == ["open"] * 4
    assert Judgment.objects.count() == rows + 4
    exclusion.reinstate_judgments(act=act, by=None)
    assert figures(collection) == with_alice
    assert rebuild_labels(collection) == 0
    assert [item.state for item in Item.objects.order_by("pk")] == ["settled", "settled", "conflict", "settled"]


def test_others_get_what_was_set_aside_and_what_comes_back_makes_a_conflict_where_they_differ(collection, alice, bob):
    make_scene(collection, 2)
    Item.objects.update(overlap=1)
    judge(alice, [1, 1])
    campaign = Item.objects.values_list("campaign", flat=True)[0]
    assert claim(bob) is None and counters.read(campaign)["settled"] == 2
    act = exclusion.exclude_judgments(membership=alice, by=None)
    assert claim(alice) is None and counters.read(campaign)["settled"] == 0
    judge(bob, [1, 0])
    assert sorted(Label.objects.values_list("grade", flat=True)) == [0, 1]
    exclusion.reinstate_judgments(act=act, by=None)
    same, other = Item.objects.order_by("pk")
    assert (same.state, same.done, same.overlap) == ("settled", 2, 2)
    assert (other.state, other.done, other.overlap) == ("conflict", 2, 2)
    assert list(Label.objects.values_list("pair", "grade")) == [(same.pair_id, 1)]
    assert counters.read(campaign)["settled"] == 1


def test_what_was_set_aside_is_brought_back_once(collection, alice):
    make_item(make_pair(collection))
    judge(alice, [1])
    act = exclusion.exclude_judgments(membership=alice, by=None)
    with pytest.raises(BadInput, match="no active judgments"):
        exclusion.exclude_judgments(membership=alice, by=None)
    for wrong in (lambda: JudgmentExclusion.objects.filter(pk=act.pk).update(note=""), act.delete):
        with pytest.raises(DatabaseError), transaction.atomic():
            wrong()
    back = exclusion.reinstate_judgments(act=act, by=None)
    for wrong in (act, back):
        with pytest.raises(BadInput, match="already"):
            exclusion.reinstate_judgments(act=wrong, by=None)
    exclusion.reinstate_judgments(act=exclusion.exclude_judgments(membership=alice, by=None), by=None)
    assert Judgment.objects.get(superseded_by=None).grade == 1


@pytest.mark.django_db(transaction=True)
def test_only_judgments_from_a_moment_on_are_set_aside(collection, alice):
    first, second = make_item(make_pair(collection)), make_item(make_pair(collection))
    judge(alice, [1])
    at = Judgment.objects.get().created_at + timedelta(microseconds=1)
    judge(alice, [1])
    exclusion.exclude_judgments(membership=alice, by=None, since=at)
    assert [one.item_id for one in exclusion.current_judgments(alice)] == [first.pk]
    second.refresh_from_db()
    assert second.state == "open"


def test_an_adjudication_that_is_set_aside_is_a_conflict_again(collection, alice, bob):
    carol = make_member(collection, "carol", Role.ADJUDICATOR)
    item = make_item(make_pair(collection), overlap=2)
    judge(alice, [1])
    judge(bob, [0])
    conflicts.adjudicate(carol, item.pk, 1)
    act = exclusion.exclude_judgments(membership=carol, by=None)
    item.refresh_from_db()
    assert item.state == "conflict" and not Label.objects.exists()
    exclusion.reinstate_judgments(act=act, by=None)
    item.refresh_from_db()
    assert item.state == "settled" and Label.objects.get().origin == "adjudicator"


def test_the_open_items_of_a_paused_person_return_and_nothing_of_theirs_counts_until_they_go_on(collection, alice, bob):
    item = make_item(make_pair(collection))
    held = claim(alice)
    exclusion.pause(membership=alice, by=None, note="Let us talk first.")
    held.refresh_from_db()
    item.refresh_from_db()
    assert (held.state, item.taken) == ("returned", 0)
    assert claim(alice) is None
    client = client_of(alice)
    page = client.get("/c/books/judge/").text
    assert "access is paused" in page and "Let us talk" in page
    answer = {"item": held.item_id, "token": held.token, "grade": 1, "comment": "mine"}
    refused = client.post("/c/books/judge/submit/", answer)
    assert refused.status_code == 409 and "mine" in refused.text and not Judgment.objects.exists()
    for act in (lambda: submit(alice, held, 1), lambda: skip(alice, held)):
        with pytest.raises(DecisionRefused, match="paused"):
            act()
    with pytest.raises(DecisionRefused, match="paused"):
        undo_decision(Membership.objects.get(pk=alice.pk), item.pk)
    assert claim(bob).item_id == item.pk
    make_item(make_pair(collection))
    exclusion.resume(membership=alice, by=None)
    assert claim(alice) is not None


@pytest.mark.django_db(transaction=True)
def test_a_collection_with_gold_consent_batches_and_judgments_set_aside_can_be_deleted(collection, alice):
    make_item(make_pair(collection))
    for _ in range(7):
        make_pair(collection)
    judge(alice, [1])
    exclusion.reinstate_judgments(act=exclusion.exclude_judgments(membership=alice, by=None), by=None)
    gold.draw(collection=collection, size=2, seed=1, spot=0, by=None)
    gold.record_answer(membership=alice, gold_pair=GoldPair.objects.get(place=6).pk, who="expert", grade=1)
    consent.write(collection=collection, text="Agree.", by=alice.user)
    Consent.objects.create(membership=alice, version=1)
    Batch.objects.create(membership=alice, number=0, size=20, checks=1, missed=0)
    delete_collection(collection)
    for model in (JudgmentExclusion, GoldPair, Consent, Batch, Judgment):
        assert not model.objects.exists(), model
