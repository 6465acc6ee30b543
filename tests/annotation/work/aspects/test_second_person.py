"""The second person: a blind sample, never one's own, and weighted kappa as scikit-learn has it."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from annotation.agreement.measures import NO_ITEM, ONE_GRADE
from annotation.models import Role
from annotation.models.aspects import SecondReading
from annotation.work.aspects import second
from annotation.work.aspects.kappa import importance_agreement
from corpus.aspects import revising
from corpus.aspects.entries import Wording
from corpus.errors import BadInput
from corpus.models import Collection, Query
from tests.factories import client_of, make_collection, make_member, make_query

WHY = "Without it the answer is wrong."
LEVELS = [1, 2, 3, 4, 5]
readings = st.lists(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=1, max_size=6), min_size=1, max_size=30
)


@given(readings)
def test_weighted_kappa_equals_scikit_learns(found: list[list[tuple[int, int]]]) -> None:
    pairs = [pair for reading in found for pair in reading]
    first, other = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    measured = importance_agreement(found, resamples=0)
    if len({*first, *other}) == 1:
        assert measured.linear.value is None and measured.linear.reason
        return
    for name in ("linear", "quadratic"):
        expected = cohen_kappa_score(first, other, labels=LEVELS, weights=name)
        assert getattr(measured, name).value == pytest.approx(expected, abs=1e-12)


def test_weighted_kappa_equals_a_hand_worked_one() -> None:
    # Four aspects: (5, 5), (4, 3), (2, 2), (1, 3). Distances 0, 1, 0, 2: observed linear 3/4,
    # quadratic (0+1+0+4)/4. Chance: all 16 crossings of {5, 4, 2, 1} with {5, 3, 2, 3}: distances
    # 0+2+3+2, 1+1+2+1, 3+1+0+1, 4+2+1+2 = 26, squares 0+4+9+4, 1+1+4+1, 9+1+0+1, 16+4+1+4 = 60.
    # Linear 1 - (3/4)/(26/16) = 7/13, quadratic 1 - (5/4)/(60/16) = 2/3.
    found = importance_agreement([[(5, 5), (4, 3)], [(2, 2), (1, 3)]], resamples=0)
    assert found.linear.value == pytest.approx(7 / 13)
    assert found.quadratic.value == pytest.approx(2 / 3)
    assert found.percent.value == 0.5
    assert found.table[3][2] == 1 and sum(map(sum, found.table)) == 4
    # 10 decisions: 6 kept and accepted, 1 kept and changed, 2 discarded and accepted, 1 discarded and changed.
    # p = 8/10; first says yes 7, second 7: e = (7*7 + 3*3)/100 = 0.58; kappa = 0.22/0.42.
    readings = [[(1, 1)] * 6, [(1, 0)], [(0, 0)] * 2, [(0, 1)]]
    found = importance_agreement(readings, resamples=0, levels=range(2))
    assert (found.plain.value, found.percent.value) == (pytest.approx(0.22 / 0.42), pytest.approx(0.8))
    assert found.table == [[2, 1], [1, 6]]
    assert importance_agreement([]).linear.reason == NO_ITEM
    assert importance_agreement([[(3, 3)], [(3, 3)]]).quadratic.reason == ONE_GRADE


def test_the_interval_draws_whole_queries() -> None:
    """Ten copies of an aspect within a query are no more evidence than one: the interval stays as wide."""
    drawn = random.Random(3)
    once = [[(n := drawn.randint(1, 5), min(5, max(1, n + drawn.choice([-1, 0, 0, 1]))))] for _ in range(40)]
    tenfold = [reading * 10 for reading in once]
    one, ten = importance_agreement(once).quadratic, importance_agreement(tenfold).quadratic
    assert one.low < one.value < one.high
    assert (ten.low, ten.high) == (pytest.approx(one.low), pytest.approx(one.high))


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    """Two people whose true kappa is known from 20,000 queries; 60 samples of 50 queries each."""
    drawn = random.Random(7)

    def query() -> list[tuple[int, int]]:
        lean = drawn.choice([-1, 0, 1])
        aspects = [drawn.randint(1, 5) for _ in range(4)]
        return [(n, min(5, max(1, n + (lean if drawn.random() < 0.5 else 0)))) for n in aspects]

    truth = importance_agreement([query() for _ in range(20_000)], resamples=0).quadratic.value
    found = [importance_agreement([query() for _ in range(50)], resamples=400, seed=n).quadratic for n in range(60)]
    # 57 are expected of 60; fewer than 51 has a chance below 1%.
    assert sum(one.low <= truth <= one.high for one in found) >= 51


class Field:
    """A collection whose queries Bob and Dana decomposed in turn."""

    def __init__(self, queries: int = 6) -> None:
        self.collection: Collection = make_collection("ice")
        self.bob, self.dana = (make_member(self.collection, name, Role.ADJUDICATOR) for name in ("bob", "dana"))
        self.queries: list[Query] = [
            make_query(self.collection, f"Question {n}?", external_id=f"q{n}") for n in range(queries)
        ]
        for place, query in enumerate(self.queries):
            author = (self.bob, self.dana)[place % 2].assessor
            for text, importance in (("Flow", 5), ("Melting", 2), ("Snowfall", 4)):
                revising.add_aspect(query, author, Wording(text, WHY, importance))


@pytest.fixture
def field(db: None) -> Field:
    return Field()


def test_a_sample_is_seeded_and_at_most_as_large_as_there_are_queries(field: Field) -> None:
    one, same = (second.draw_sample(field.bob, size=4, seed=1) for _ in range(2))
    other = second.draw_sample(field.bob, size=4, seed=2)
    assert one.revisions == same.revisions != other.revisions
    assert len(second.draw_sample(field.bob).revisions) == 6
    with pytest.raises(BadInput):
        second.draw_sample(field.bob, size=0)
    # A change after the drawing leaves the comparison as it was.
    task = second.next_task(other, field.bob)
    revising.weigh_aspects(task.revision.query, field.dana.assessor, {"a1": 1})
    second.submit_reading(other, field.bob, task.revision.pk, {"a1": 5, "a2": 2, "a3": 4})
    assert second.sample_results(other)["agreement"].percent.value == 1.0


def test_nobody_gets_a_query_that_they_worked_on(field: Field) -> None:
    sample = second.draw_sample(field.bob)
    seen = []
    while task := second.next_task(sample, field.bob):
        seen.append(task.revision.query.external_id)
        second.submit_reading(sample, field.bob, task.revision.pk, {entry.id: 3 for entry in task.entries})
    assert sorted(seen) == ["q1", "q3", "q5"]
    own = next(pk for pk in sample.revisions if pk not in SecondReading.objects.values_list("revision", flat=True))
    with pytest.raises(BadInput, match="Another person"):
        second.submit_reading(sample, field.bob, own, {"a1": 3, "a2": 3, "a3": 3})
    read = SecondReading.objects.values_list("revision", flat=True)[0]
    with pytest.raises(BadInput, match="just weighed"):
        eve = make_member(field.collection, "eve", Role.ADJUDICATOR)
        second.submit_reading(sample, eve, read, {"a1": 3, "a2": 3, "a3": 3})
    revising.clarify_aspect(field.queries[0], field.dana.assessor, "a1", Wording("Creep", WHY))
    left = second.next_task(sample, field.dana)
    assert left is not None and left.revision.query.external_id in {"q2", "q4"}


def test_the_page_shows_no_weight_no_author_and_another_order(field: Field) -> None:
    second.draw_sample(field.bob)
    page = client_of(field.bob).get("/c/ice/aspects/second-person/weigh/").text
    main = page.split("<main")[1].split("</main>")[0]
    assert not [hidden for hidden in ("dana", "checked", "0.45", "0.18", "0.36") if hidden in main]
    orders = {
        tuple(
            entry.id for entry in second.shuffle_aspects(task.entries, str(second.draw_sample(field.bob, seed=seed).pk))
        )
        for seed in range(8)
        if (task := second.next_task(second.newest_sample(field.collection), field.bob))
    }
    assert len(orders) > 1


def test_two_people_agree_on_the_page_and_the_results_follow(field: Field) -> None:
    client = client_of(field.bob)
    assert client.get("/c/ice/aspects/second-person/weigh/").status_code == 302
    client.post("/c/ice/aspects/second-person/", {"size": 50, "seed": 0})
    sample = second.newest_sample(field.collection)
    for member in (field.bob, field.dana):
        for _ in range(3):
            task = second.next_task(sample, member)
            given = {f"w-{entry.id}": min(5, entry.importance + 1) for entry in task.entries}
            address, posted = "/c/ice/aspects/second-person/weigh/", {"revision": task.revision.pk}
            assert client_of(member).post(address, posted | {"w-a1": 3}).status_code == 422
            client_of(member).post(address, posted | given | {"comment": "hm"})
    # Six queries of (5, 5), (2, 3), (4, 5).
    expected = cohen_kappa_score([5, 2, 4] * 6, [5, 3, 5] * 6, labels=LEVELS, weights="quadratic")
    assert second.sample_results(sample)["agreement"].quadratic.value == pytest.approx(expected)
    page = client.get("/c/ice/aspects/second-person/").text
    assert f"{expected:.3f}" in page
    assert "6 of 6 queries, 18 aspects" in page
    assert client.get("/c/ice/aspects/second-person/weigh/").context["task"] is None
