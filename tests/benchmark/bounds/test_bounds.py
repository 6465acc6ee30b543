"""How far nDCG@k can move while pairs are unjudged: bounds that hold and are reached, and orders not settled."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark.bounds.bounds import ideal_dcg, largest_ndcg, smallest_ndcg
from benchmark.bounds.order import compute_bounds

D2 = 1 / math.log2(3)
"""What a document at rank 2 counts."""


def grades_of(found: dict[int, int]) -> tuple[np.ndarray, np.ndarray]:
    documents = sorted(found)
    return np.array(documents, np.int64), np.array([found[one] for one in documents], np.int16)


def ndcg(ranking: list[int], grades: dict[int, int], k: int) -> float:
    """Written anew, from the definition."""
    gained = sum(grades.get(one, 0) / math.log2(rank + 1) for rank, one in enumerate(ranking[:k], 1))
    best = sorted(grades.values(), reverse=True)[:k]
    most = sum(grade / math.log2(rank + 1) for rank, grade in enumerate(best, 1))
    return gained / most if most else 0.0


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[list[int]], dict[int, int], int, int]:
    """Some rankings of one query, what is judged of it, the highest grade, and k."""
    top, k = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    documents = list(range(1, draw(st.integers(2, 6)) + 1))
    rankings = [draw(st.permutations(documents))[: draw(st.integers(0, 5))] for _ in range(draw(st.integers(1, 3)))]
    judged = {one: draw(st.integers(0, top)) for one in documents if draw(st.booleans())}
    judged |= {100 + n: draw(st.integers(0, top)) for n in range(draw(st.integers(0, 3)))}
    return rankings, judged, top, k


def assessed(rankings: list[list[int]], judged: dict[int, int], top: int, k: int) -> dict[str, Any]:
    runs = {n: {7: np.array(ranking, np.int64)} for n, ranking in enumerate(rankings)}
    return compute_bounds(runs, {7: grades_of(judged)}, top, k)


def completions(rankings: list[list[int]], judged: dict[int, int], top: int, k: int) -> list[dict[int, int]]:
    unjudged = sorted({one for ranking in rankings for one in ranking[:k]} - set(judged))
    return [
        judged | dict(zip(unjudged, grades, strict=True))
        for grades in itertools.product(range(top + 1), repeat=len(unjudged))
    ]


@given(worlds())
def test_bounds_are_the_extremes_over_every_completion(world):
    rankings, judged, _, k = world
    every = completions(*world)
    for system, ranking in zip(assessed(*world)["systems"], rankings, strict=True):
        values = [ndcg(ranking, grades, k) for grades in every]
        assert system["value"] == pytest.approx(ndcg(ranking, judged, k))
        assert (system["low"], system["high"]) == pytest.approx((min(values), max(values)))


@given(worlds())
def test_an_order_is_not_settled_when_completions_turn_it(world):
    rankings, _, _, k = world
    every = completions(*world)
    turned = []
    for (one, a), (other, b) in itertools.combinations(enumerate(rankings), 2):
        apart = [ndcg(a, grades, k) - ndcg(b, grades, k) for grades in every]
        if min(apart) < -1e-9 and max(apart) > 1e-9:
            turned.append((one, other))
    assert assessed(*world)["unsettled"] == turned


@pytest.mark.parametrize("top", [1, 3, 10])
def test_bounds_are_reached_by_the_grades_that_come_with_them(top):
    random = np.random.default_rng(3)
    weights = -np.sort(-random.normal(size=(200, 12)), axis=1)
    sizes, counts = random.integers(0, 13, 200), random.integers(0, 3, (200, top + 1))
    const, gains = random.normal(size=200) * (counts[:, 1:].sum(axis=1) > 0), np.arange(top + 1.0)
    for function, sign in ((largest_ndcg, 1), (smallest_ndcg, -1)):
        values, chosen = function(const, weights, sizes, counts, gains, 5)
        for row, size in enumerate(sizes):

            def value(grades: np.ndarray, row: int = row, size: int = size) -> float:
                all_ = counts[row] + np.bincount(grades, minlength=top + 1)
                best = ideal_dcg(all_[None, :], gains, 5)[0]
                return float((const[row] + weights[row, :size] @ gains[grades]) / best) if best else 0.0

            assert value(chosen[row, :size]) == pytest.approx(values[row], abs=1e-9)
            for _ in range(20):
                assert sign * value(random.integers(0, top + 1, size)) <= sign * values[row] + 1e-9


def test_a_relevant_document_far_down_can_lower_the_measure():
    """One relevant document at rank 1; unjudged at rank 2: (1 + D2) / (1 + D2) = 1 if relevant, 1
    if not. At rank 10 the ideal would want it at rank 2: (1 + 1/log2(11)) / (1 + D2) = 0.7903 is
    lower than 1."""
    ranking = [1, *range(11, 19), 2]
    judged = {1: 1} | dict.fromkeys(range(11, 19), 0)
    (system,) = assessed([ranking], judged, 1, 10)["systems"]
    assert system["value"] == system["high"] == 1.0
    assert system["low"] == pytest.approx((1 + 1 / math.log2(11)) / (1 + D2)) == pytest.approx(0.7903, abs=1e-4)
    assert system["judged"] == pytest.approx(0.9)


def test_what_others_returned_lowers_the_measure_through_the_ideal():
    """The run has the one relevant document first; another run's unjudged one would take rank 2 of the ideal."""
    found = assessed([[1], [2]], {1: 1}, 1, 10)
    one, other = found["systems"]
    assert (one["low"], one["value"], one["high"]) == pytest.approx((1 / (1 + D2), 1.0, 1.0))
    assert (other["low"], other["value"], other["high"]) == pytest.approx((0.0, 0.0, 1 / (1 + D2)))
    assert found["unsettled"] == [], "they can be equal, the other can never be ahead"
    assert found["unjudged"] == 1
    found = assessed([[1, 2], [2, 1]], {1: 2, 2: 1}, 2, 10)
    assert all(one["low"] == one["value"] == one["high"] for one in found["systems"])
    assert (found["unsettled"], found["first"], found["unjudged"]) == ([], [], 0)


def test_the_pair_that_moves_the_difference_most_comes_first():
    """Both runs return document 9 last; 1 and 2 are first of one run each, so they count 1 against 1/log2(4)."""
    found = assessed([[1, 3, 9], [2, 3, 9]], {50: 1}, 1, 10)
    assert found["unsettled"] == [(0, 1)]
    assert [(document, value) for _query, document, value in found["first"]] == [
        (1, pytest.approx(1 / (1 + D2))),
        (2, pytest.approx(1 / (1 + D2))),
    ], "what both return at the same rank moves nothing"


def test_a_query_that_a_run_lacks_counts_nothing_and_one_without_a_grade_is_in_no_mean():
    rankings = {1: {1: np.array([5])}, 2: {1: np.array([5]), 2: np.array([6])}}
    found = compute_bounds(rankings, {1: grades_of({5: 1}), 2: grades_of({7: 1})}, 1, 10)
    assert [(one["low"], one["value"]) for one in found["systems"]] == [(0.5, 0.5), (0.5, 0.5)]
    assert found["systems"][0]["high"] == 0.5
    assert found["systems"][1]["high"] == pytest.approx((1 + 1 / (1 + D2)) / 2)
    # An imported version keeps a query whose grades are all below 0, without documents: nothing is judged of it.
    runs = {1: {7: np.array([1, 2]), 8: np.array([3])}, 2: {7: np.array([2, 1]), 8: np.array([4])}}
    judged = {7: grades_of({1: 1})}
    assert compute_bounds(runs, {**judged, 8: grades_of({})}, 1, 2) == compute_bounds(runs, judged, 1, 2)
