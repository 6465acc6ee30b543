"""Gold: the sample, its experts, the senior's share, and what it is used for (DREAM A.2)."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotation.models import Membership, Role
from annotation.models.quality_control import GoldAnswer, GoldPair
from annotation.work.quality_control import attention_checks, gold, qualification
from annotation.work.quality_control.matching import PairFeatures, draw_pool
from annotation.work.quality_control.onboarding import PRACTICE_COUNT
from corpus.errors import BadInput, StateConflict
from corpus.labels import reference_grades
from corpus.models import Assessor, Collection, Judgment, Label
from tests.evidence import make_campaign, make_judge
from tests.factories import make_collection, make_document, make_member, make_pair, make_query
from tests.judging_scene import escalate
from tests.queue_scene import signed_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def books():
    """Twenty queries with three documents each; a quarter of them long, half of them without an answer."""
    collection = make_collection("books")
    for number in range(20):
        words = "which of the many mappings keeps its order" if number % 4 == 0 else "order of keys"
        query = make_query(collection, f"{words} {number}", answers=["In order."] if number % 2 else [])
        for part in range(3):
            text = f"Mappings keep order {number}. Part {part} says so."
            make_pair(collection, query, make_document(collection, text))
    return collection


def expert(collection, name: str, role: Role = Role.ANNOTATOR) -> Membership:
    member = make_member(collection, name, role)
    member.is_expert = True
    member.save()
    return member


def test_a_sample_takes_each_stratum_by_its_share_and_is_the_same_for_the_same_seed():
    """By hand: 60, 30 and 10 of 100 pairs; of 15 they get 9, 4.5, 1.5: 9 and 4 and 1, and the
    fifteenth goes to the first by name among the two that lost one half."""
    strata = {"a": list(range(60)), "b": list(range(60, 90)), "c": list(range(90, 100))}
    found = gold.sample_pairs(strata, 15, seed=7)
    counts = [sum(stratum == name for _pair, stratum in found) for name in "abc"]
    assert counts == [9, 5, 1]
    assert found == gold.sample_pairs(strata, 15, seed=7) != gold.sample_pairs(strata, 15, seed=8)
    assert len(gold.sample_pairs(strata, 1000, seed=7)) == 100
    assert gold.sample_pairs({}, 5, seed=0) == []


def test_a_gold_set_has_one_pair_of_a_query_five_for_practice_and_a_share_for_the_senior(books):
    with CaptureQueriesContext(connection) as seen:
        made = gold.draw(collection=books, size=10, seed=3, spot=0.3, by=None)
    statements = [one["sql"] for one in seen]
    locks = next(place for place, sql in enumerate(statements) if "FOR NO KEY UPDATE" in sql)
    assert locks < next(place for place, sql in enumerate(statements) if "annotation_goldpair" in sql), "one at a time"
    rows = list(GoldPair.objects.filter(gold_set=made).select_related("pair").order_by("place"))
    assert len(rows) == 15
    assert [row.practice for row in rows] == [True] * 5 + [False] * 10
    assert sum(row.spot for row in rows) == 3 and not any(row.spot for row in rows[:5])
    assert len({row.pair.query_id for row in rows}) == 15
    assert {row.stratum for row in rows} <= {
        f"{known}, {length} query" for known in ("no answer", "one answer") for length in ("long", "short")
    }
    # Each has a reason for and one against, with quotes from the document.
    for row in GoldPair.objects.select_related("pair__document"):
        sides = {turn["side"]: turn for turn in row.turns}
        assert (sides["for"]["verdict"], sides["against"]["verdict"]) == (1, 0)
        assert all(turn["reason"] for turn in row.turns) and row.written_by == "offline"
        for quote in (quote for turn in row.turns for quote in turn["quotes"]):
            assert row.pair.document.text[quote["start"] : quote["end"]] == quote["text"]
    with pytest.raises(BadInput, match="5 queries"):
        gold.draw(collection=books, size=10, seed=4, spot=0.3, by=None)


def test_experts_practise_first_then_share_the_pairs_and_what_they_say_is_the_reference(books):
    gold.draw(collection=books, size=10, seed=3, spot=0, by=None)
    alice, bob = expert(books, "alice"), expert(books, "bob")
    for member in (alice, bob):
        for _ in range(5):
            row = gold.next_for_expert(member)
            assert row.practice
            gold.record_answer(membership=member, gold_pair=row.pk, who="expert", grade=1)
    assert not Judgment.objects.exists()
    first = gold.next_for_expert(alice)
    for _ in range(2):  # the same answer again changes nothing
        gold.record_answer(membership=alice, gold_pair=first.pk, who="expert", grade=1, comment="It says so.")
    assert GoldAnswer.objects.filter(gold_pair=first).count() == 1
    with pytest.raises(StateConflict, match="Another person graded"):
        gold.record_answer(membership=bob, gold_pair=first.pk, who="expert", grade=0)
    while (row := gold.next_for_expert(bob)) is not None:
        gold.record_answer(membership=bob, gold_pair=row.pk, who="expert", grade=0)
    assert sorted(reference_grades(books).values()) == [0] * 9 + [1]
    assert not Label.objects.exists(), "gold measures and never settles"


def test_the_senior_looks_at_the_random_share_never_at_their_own_and_their_word_holds(books):
    gold.draw(collection=books, size=10, seed=3, spot=0.4, by=None)
    alice = expert(books, "alice", Role.ADJUDICATOR)
    carol = make_member(books, "carol", Role.ADJUDICATOR)
    while (row := gold.next_for_expert(alice)) is not None:
        gold.record_answer(membership=alice, gold_pair=row.pk, who="expert", grade=1)
    assert gold.next_for_senior(alice) is None
    own = GoldPair.objects.filter(spot=True).first()
    with pytest.raises(StateConflict, match="Another reviewer"):
        gold.record_answer(membership=alice, gold_pair=own.pk, who="senior", grade=1)
    grades = iter([1, 1, 1, 0])
    while (row := gold.next_for_senior(carol)) is not None:
        assert row.spot
        gold.record_answer(membership=carol, gold_pair=row.pk, who="senior", grade=next(grades))
    (found,) = gold.list_progress(books)
    assert [found[key] for key in ("pairs", "graded", "relevant", "reviewed", "done")] == [10, 10, 9, 4, True]
    assert found["same"].value == 0.75
    assert (round(found["same"].low, 3), round(found["same"].high, 3)) == (0.194, 0.994)  # Clopper-Pearson, 3 of 4
    assert sorted(reference_grades(books).values()) == [0] + [1] * 9
    assert Judgment.objects.filter(superseded_by=None).count() == 10


def test_the_pages_of_gold_lead_from_the_draw_to_the_last_pair(books):
    admin = make_member(books, "admin", Role.ADMIN)
    alice = make_member(books, "alice")
    client = signed_in(admin)
    assert "No sample yet" in client.get("/c/books/gold/").text
    assert client.post("/c/books/gold/", {"size": 2, "seed": 1, "spot": 2}).status_code == 422
    assert client.post("/c/books/gold/", {"size": 2, "seed": 1, "spot": 0}).status_code == 302
    client.post(f"/c/books/people/{alice.pk}/expert/", {"on": "1"})
    desk = signed_in(alice)
    for _ in range(7):
        page = desk.get("/c/books/gold/grade/").text
        assert page.count('name="grade"') >= 2 and "Arguments for and" in page
        item = GoldPair.objects.get(pk=int(page.split('data-item="')[1].split('"')[0]))
        assert desk.post("/c/books/gold/grade/", {"item": item.pk, "grade": 1}).status_code == 303
    assert desk.get("/c/books/gold/grade/").context["gold"] is None
    assert desk.get("/c/books/gold/").status_code == 403
    page = client.get(f"/c/books/gold/{item.gold_set.number}/").text
    assert page.count("practice") >= 5 and "alice" in page
    client.post(f"/c/books/people/{alice.pk}/expert/", {"on": "0"})
    assert "judging/no_expert.html" in [template.name for template in desk.get("/c/books/gold/grade/").templates]


FEW, MANY = 10, 50


def make_checks(collection: Collection, count: int, form: str = "own") -> None:
    assert attention_checks.make_checks(collection=collection, count=count, seed=1, by=None, form=form) == count


def make_dream_checks(collection: Collection, count: int) -> None:
    make_checks(collection, count, attention_checks.DREAM)


def make_test(collection: Collection, count: int) -> None:
    qualification.make_test(collection=collection, size=count - PRACTICE_COUNT, seed=1, by=None)


def draw_gold(collection: Collection, count: int) -> None:
    gold.draw(collection=collection, size=count - gold.PRACTICE_COUNT, seed=1, spot=0.1, by=None)


@pytest.mark.parametrize("act", [make_checks, make_dream_checks, make_test, draw_gold])
def test_many_pairs_take_no_more_statements_than_few(act: Callable[[Collection, int], None]) -> None:
    judges, counts = [make_judge("debater-a"), make_judge("debater-b")], []
    for number, count in enumerate((FEW, MANY)):
        collection = make_collection(f"books-{number}")
        campaign = make_campaign(collection, judges, policy="debate")
        for _ in range(3):
            escalate(campaign, make_pair(collection))
        reference = Assessor.objects.create(collection=collection, kind="reference", name="gold")
        pairs = [make_pair(collection) for _ in range(count)]
        Judgment.objects.bulk_create(Judgment(pair=pair, assessor=reference, step="import", grade=1) for pair in pairs)
        with CaptureQueriesContext(connection) as seen:
            act(collection, count)
        counts.append(len(seen))
    assert counts[0] == counts[1], counts


def test_a_pool_of_gold_has_both_labels_and_first_what_was_argued_about() -> None:
    gold = [
        PairFeatures(number, "", relevant=number % 10 == 0, argued={1: 2} if number < 40 else {})
        for number in range(100)
    ]
    pool = draw_pool(gold, 20, seed=1)
    assert {look.pair for look in pool if look.relevant} == set(range(0, 100, 10))
    assert len(pool) == 30 and all(look.argued for look in pool if not look.relevant)
    assert [look.pair for look in draw_pool(gold, 20, seed=2)] != [look.pair for look in pool]
