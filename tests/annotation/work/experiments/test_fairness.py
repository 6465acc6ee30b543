"""Arms and paired studies on a real database: what the page says is what people did (checks 5 and 6)."""

import json
from collections import Counter
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotation.models import Assignment, AuditEntry, Membership, Role, Study
from annotation.quality.label_quality.kappas import measure_kappas, read_binary_votes
from annotation.work.experiments import report
from annotation.work.experiments.flips import NO_RIGHT_FIRST_VOTE
from annotation.work.experiments.moments import SINGLE_CLASS
from annotation.work.experiments.studies import end_study, groups_of, make_study
from annotation.work.quality_control.exclusion import exclude_judgments, reinstate_judgments
from annotation.work.queue import assignment
from annotation.work.queue.judging_time import median_seconds
from annotation.work.queue.undo import undo_decision
from corpus.collections.configure import configure_collection
from corpus.errors import BadInput
from corpus.models import Collection, Item, Judgment, Label
from corpus.models.texts import shown_only
from tests.evidence import make_assessor, make_judgment
from tests.factories import make_collection, make_item, make_member, make_pair
from tests.judging_scene import make_scene
from tests.queue_scene import claim, signed_in, skip, submit

pytestmark = pytest.mark.django_db
REVEAL = {"shown": 0, "hidden": 0, "reveal": 1}


def answer(member: Membership, grade: int, *, seconds: float | None = None):
    """One answer to whatever is on the member's desk; the lease that follows."""
    lease = claim(member)
    Assignment.objects.filter(pk=lease.pk).update(lent_at=timezone.now() - timedelta(minutes=5))
    submit(member, lease, grade, milliseconds=None if seconds is None else round(seconds * 1000))
    return lease


def gold(item: Item, grade: int) -> None:
    make_judgment(item.pair, make_assessor(item.collection, "gold", "reference"), grade)


@pytest.fixture
def books():
    return make_collection("books", arms=REVEAL)


def test_the_flip_table_equals_a_count_by_hand(books):
    """Six pairs, truths 1 1 0 0 1 -. Alice: 11 10 10 01 01 01 (first, final); Bob on the first and fourth: 00 00."""
    items = make_scene(books, 6, overlap=2)
    for item, truth in zip(items, (1, 1, 0, 0, 1, None), strict=True):
        if truth is not None:
            gold(item, truth)
    alice, bob = make_member(books, "alice"), make_member(books, "bob")
    for first, final in ("11", "10", "10", "01", "01", "01"):
        answer(alice, int(first))
        answer(alice, int(final))
    for place in range(6):
        lease = claim(bob)
        if place in (0, 3):
            answer(bob, 0)
            answer(bob, 0)
        else:
            skip(bob, lease)
    found = report.build_json_document(report.measure_debate_effect(books), [])
    flips = found["flips"]
    names = ("n", "known", "right_right", "right_wrong", "wrong_right", "wrong_wrong")
    counts = {name: flips["all"][name] for name in names}
    # Right first votes: Alice on 1, 2, 4, Bob on 4; of them Alice's 2 and 4 end wrong. Wrong first
    # votes: Alice on 3, 5, Bob on 1; of them Alice's two end right. Her sixth is without a
    # reference.
    assert counts == {"n": 8, "known": 7, "right_right": 2, "right_wrong": 2, "wrong_right": 2, "wrong_wrong": 1}
    assert (flips["all"]["right_to_wrong"]["value"], flips["all"]["wrong_to_right"]["value"]) == (0.5, 2 / 3)
    assert flips["all"]["flipped"]["value"] == 5 / 8
    by_name = {one["name"]: (one["right_wrong"], one["wrong_right"], one["n"]) for one in flips["by_person"]}
    assert by_name == {"alice": (2, 2, 6), "bob": (0, 0, 2)}
    sides = {one["moment"]: one for one in found["moments"]}
    assert (sides["reveal-first"]["votes"], sides["reveal-final"]["votes"], sides["shown"]["votes"]) == (8, 8, 0)
    # Blind on the two pairs that both judged: 1/0 and 0/0; in the end 1/0 and 1/0.
    assert (sides["reveal-first"]["percent"]["value"], sides["reveal-final"]["percent"]["value"]) == (0.5, 0.0)
    assert (sides["hidden"]["accuracy"]["value"], sides["hidden"]["accuracy"]["reason"]) == (None, "no votes yet")


def test_an_undone_first_vote_is_counted_apart_and_never_as_blind(books):
    (item,) = make_scene(books, 1)
    alice = make_member(books, "alice")
    answer(alice, 0)
    undo_decision(Membership.objects.get(pk=alice.pk), item.pk)
    answer(alice, 1)
    answer(alice, 1)
    found = report.measure_debate_effect(books)
    assert found["first_votes_not_blind"] == 1
    assert {side["moment"]: side["votes"] for side in found["moments"]} == {
        "hidden": 0, "reveal-first": 0, "reveal-final": 1, "shown": 0,
    }  # fmt: skip
    assert found["flips"]["all"]["n"] == 0


def test_judgments_that_are_set_aside_leave_the_table_and_come_back_as_blind_as_they_were(books):
    make_scene(books, 3)
    alice = make_member(books, "alice")
    for grade in (0, 1, 1, 1, 0, 1):
        answer(alice, grade, seconds=4)
    assert median_seconds(books) == 8, "the time of both votes"
    before = report.build_json_document(report.measure_debate_effect(books), [])
    assert before["flips"]["all"]["n"] == 3
    act = exclude_judgments(membership=Membership.objects.get(pk=alice.pk), by=None)
    gone = report.measure_debate_effect(books)
    assert (gone["votes"], gone["flips"]["all"]["n"]) == (0, 0)
    reinstate_judgments(act=act, by=None)
    after = report.build_json_document(report.measure_debate_effect(books), [])
    assert after == before


def test_audits_studies_and_what_was_judged_before_arms_are_not_compared(books):
    alice = make_member(books, "alice")
    Collection.objects.update(arms={"shown": 1, "hidden": 1, "reveal": 0})
    for reason in ("audit", "disagreement", "disagreement", "study"):
        make_item(make_pair(books), reason=reason)
    for _ in range(4):
        lease = claim(alice)
        answer(alice, 1, seconds=25 if lease.item.arm == "hidden" else 10)
    found = report.measure_debate_effect(books)
    assert sum(side["votes"] for side in found["moments"]) == 2 and Judgment.objects.count() == 4
    assert (found["seconds_saved"]["value"], found["seconds_saved"]["n"]) == (15, 2)
    Item.objects.update(arm="")
    assert report.measure_debate_effect(books)["votes"] == 0


def test_human_agreement_is_of_blind_votes_and_the_others_are_named_apart(books):
    """Two pairs revealed: blind 1/0, 0/0, final 1/1, 0/0. Two shown: 1/0, 1/0. One hidden: 1/1."""
    pair = [make_member(books, name) for name in ("alice", "bob")]
    for arm, answers in (
        ("reveal", ("11", "01")), ("reveal", ("00", "00")), ("shown", "10"), ("shown", "10"), ("hidden", "11"),
    ):  # fmt: skip
        make_item(make_pair(books), overlap=2, arm=arm)
        for member, given in zip(pair, answers, strict=True):
            for grade in given:
                answer(member, int(grade))
    kappas = measure_kappas(books, read_binary_votes(books))
    found = {one.group: (one.pairs, one.percent.value) for one in kappas if one.population == "all"}
    assert found["people"] == (3, pytest.approx(2 / 3))
    assert found["people (debate shown)"] == (2, 0)
    assert found["people (final answers)"] == (5, pytest.approx(3 / 5))


def people(collection, count: int = 6) -> list[Membership]:
    return [make_member(collection, f"person-{number}") for number in range(count)]


def test_a_paired_study_lends_the_same_pairs_to_two_disjoint_groups(books):
    items = make_scene(books, 5)
    Collection.objects.update(arms={"shown": 1, "hidden": 0, "reveal": 0})
    for item in items:
        gold(item, 1)
    members = people(books, 7)
    outsider, *taking_part = members
    study = make_study(by=None, collection=books, people=[m.pk for m in taking_part], pairs=4, seed=9)
    shown, hidden = groups_of([m.pk for m in taking_part], 9)
    assert (len(shown), len(hidden), set(shown) & set(hidden)) == (3, 3, set())
    made = Item.objects.filter(reason="study")
    assert Counter(made.values_list("arm", flat=True)) == {"shown": 4, "hidden": 4}
    assert set(made.filter(arm="shown").values_list("pair")) == set(made.filter(arm="hidden").values_list("pair"))
    # Whoever takes no part gets the one pair that is not in the study; the others wait.
    lease = answer(outsider, 0)
    assert lease.item.reason == "disagreement"
    first_met = lease.item.pair_id
    assert claim(outsider) is None
    met: dict[int, set[tuple[int, str]]] = {}
    for member in taking_part:
        for turn in range(4):
            lease = answer(member, int(member.pk in shown or turn % 2), seconds=5 if member.pk in shown else 8)
            met.setdefault(member.pk, set()).add((lease.item.pair_id, lease.item.arm))
        assert claim(member) is None
    for member, arms in met.items():
        assert {arm for _, arm in arms} == {"shown" if member in shown else "hidden"}
        assert len({pair for pair, _ in arms}) == 4
    assert set(made.values_list("state", flat=True)) == {"settled"}
    assert list(Label.objects.values_list("pair", flat=True)) == [first_met]
    (found,) = report.list_studies(books)
    assert (found.pairs, found.table.pairs, found.table.referenced) == (4, 4, 4)
    assert {*found.shown, *found.hidden} == {member.user.username for member in taking_part}
    assert found.table.shown.recall_relevant.value == 1.0
    assert (found.table.hidden.seconds.value, found.table.shown.seconds.value) == (8, 5)
    assert found.table.difference.seconds.value == 3
    assert found.table.shown.fleiss.value is None
    assert found.table.shown.balanced_accuracy.reason == SINGLE_CLASS
    end_study(None, study)
    assert claim(outsider).item.reason == "disagreement"
    assert not Item.objects.filter(reason="disagreement", reserved=True).exists()


def test_a_study_that_ends_early_withdraws_what_is_open_and_new_settings_reach_what_waited(books):
    make_scene(books, 3)
    members = people(books, 2)
    values = {"by": None, "collection": books, "people": [m.pk for m in members], "overlap": 1, "gold": False}
    study = make_study(**values, pairs=3)
    configure_collection(books, {"overlap": 3, "order": "query"})
    assert set(Item.objects.filter(reason="study").values_list("overlap", "priority")) == {(1, -1e9)}
    lease = claim(members[0])
    for _ in range(2):
        end_study(None, study)
    assert Counter(Item.objects.filter(reason="study").values_list("state", flat=True)) == {"withdrawn": 6}
    for item in Item.objects.filter(reason="disagreement"):
        assert (item.overlap, item.priority, item.reserved) == (3, item.pair.query_id, False)
    assert Study.objects.get().ended_at is not None
    with pytest.raises(assignment.DecisionRefused):
        submit(members[0], lease, 1)
    assert make_study(**values, pairs=2).items.count() == 4


def test_a_study_never_asks_somebody_about_a_pair_that_they_have_met(books):
    make_scene(books, 3)
    alice, bob = people(books, 2)
    answer(alice, 0)
    answer(alice, 1)
    with pytest.raises(BadInput, match=r"1 escalated pairs .* 2 were"):
        make_study(by=None, collection=books, people=[alice.pk, bob.pk], pairs=2, overlap=1, gold=False)
    assert not Study.objects.exists()
    with pytest.raises(BadInput, match="groups of 3 need 6"):
        make_study(by=None, collection=books, people=[alice.pk, bob.pk], pairs=1)
    with pytest.raises(BadInput, match="0 escalated pairs"):
        make_study(by=None, collection=books, people=[alice.pk, bob.pk], pairs=1, overlap=1)


@pytest.fixture
def admin(books):
    return signed_in(make_member(books, "charlie", Role.ADMIN))


def test_the_page_its_json_and_its_csv_say_the_same(books, admin):
    items = make_scene(books, 2)
    gold(items[0], 1)
    alice = make_member(books, "alice")
    for grade in (0, 1, 1, 1):
        answer(alice, grade, seconds=4)
    page = admin.get("/c/books/debate-effect/")
    assert "wrong to correct" in page.text and "100.0%" in page.text and "alice" in page.text
    found = json.loads(admin.get("/c/books/debate-effect.json").text)
    assert found["flips"]["all"]["wrong_to_right"]["value"] == 1.0
    rows = admin.get("/c/books/debate-effect.csv").text.splitlines()
    assert rows[0] == "part,row,measure,value,low,high,n,reason"
    assert f"flips,all,right_to_wrong,,,,0,{NO_RIGHT_FIRST_VOTE}" in rows
    assert any(row.startswith("flips by person,alice,wrong_to_right,1.0,0.02") for row in rows)
    svg = admin.get("/c/books/debate-effect/?chart=flips&as=svg")
    assert svg["Content-Type"].startswith("image/svg+xml")
    assert admin.get("/c/books/debate-effect.json?since=2999-01-01").json()["votes"] == 0
    assert admin.get("/c/books/debate-effect/?since=2999-99-99").status_code == 200


def test_the_settings_page_sets_the_weights(books, admin):
    """The weights are of the Lab; without it they are shown only where an experiment goes on."""
    Collection.objects.update(arms=shown_only())
    assert "arms-h" not in admin.get("/c/books/settings/").text
    Collection.objects.update(lab=True)
    assert 'debate-effect/">Debate effect study</a>' in admin.get("/c/books/settings/").text
    answer = admin.post("/c/books/settings/experiment-arms/", {"shown": 2, "hidden": 1, "reveal": 1})
    assert (answer.status_code, answer["Location"]) == (302, "/c/books/settings/")
    assert Collection.objects.get().arms == {"shown": 2, "hidden": 1, "reveal": 1}
    Collection.objects.update(lab=False)
    page = admin.get("/c/books/settings/").text
    assert "arms-h" in page and "Debate effect study" not in page
    assert admin.post("/c/books/settings/experiment-arms/", {"shown": 0, "hidden": 0, "reveal": 0}).status_code == 422


def test_a_study_is_made_and_ended_on_the_page_and_in_the_audit_log(books, admin):
    make_scene(books, 6)
    members = people(books, 2)
    given = {"pairs": 2, "overlap": 1, "people": [m.pk for m in members]}
    answer = admin.post("/c/books/debate-effect/studies/", given)
    assert answer.status_code == 302
    study = Study.objects.get()
    assert study.made_by.username == "charlie"
    for _ in range(2):
        make_study(by=None, collection=books, people=given["people"], pairs=2, overlap=1, gold=False)
    with CaptureQueriesContext(connection) as counted:
        assert "0 of 2 pairs" in admin.get("/c/books/debate-effect/").text
    assert len(counted) <= 20
    assert admin.post(f"/c/books/debate-effect/studies/{study.number}/end/").status_code == 302
    assert Study.objects.get(pk=study.pk).ended_at
    acts = list(AuditEntry.objects.filter(act__startswith="study").order_by("pk").values_list("act", flat=True))
    assert (acts[0], acts[-1]) == ("study.made", "study.ended")
    refused = admin.post("/c/books/debate-effect/studies/", {**given, "pairs": 2000})
    assert refused.status_code == 422 and "Choose fewer pairs" in refused.text
    assert admin.post("/c/books/debate-effect/studies/", {"pairs": 0}).status_code == 422
