"""Hybrids of two runs, worked by hand (issue 6, check 9)."""

import numpy as np
import pytest

from benchmark import claims, hybrids, making, rankings
from benchmark.models import Ranking, Run
from benchmark.rankings import Ranked
from corpus.errors import BadInput
from tests.factories import make_collection, make_document, make_query


def part(**scores):
    """Documents a, b, c ... are 1, 2, 3 ..."""
    keys = np.array([ord(name) - ord("a") + 1 for name in scores], dtype=np.int64)
    return keys, np.array(list(scores.values()), dtype=float)


def combined(one, other, method, weights=None):
    documents, scores = hybrids.combine([one, other], weights or hybrids.WEIGHTS[method], method)
    return {chr(ord("a") - 1 + key): score for key, score in zip(documents.tolist(), scores.tolist(), strict=True)}


def test_min_max_takes_a_tenth_of_bm25():
    """BM25 a 12, b 7, c 2 becomes 1, 0.5, 0; the other a 0.2, b 0.8, c 0.5 becomes 0, 1, 0.5.

    a: 0.1 x 1 + 0.9 x 0 = 0.1; b: 0.1 x 0.5 + 0.9 x 1 = 0.95; c: 0.1 x 0 + 0.9 x 0.5 = 0.45.
    """
    found = combined(part(a=12, b=7, c=2), part(b=0.8, c=0.5, a=0.2), "minmax")
    assert found == pytest.approx({"a": 0.1, "b": 0.95, "c": 0.45})


def test_z_scores_take_a_fifth_of_bm25():
    """BM25 a 9, b 6, c 3: mean 6, variance (9 + 0 + 9) / 3 = 6, z = 3 / sqrt 6 = 1.2247, 0, -1.2247.

    The other a 0, b 4, c 2: mean 2, variance (4 + 4 + 0) / 3 = 8 / 3, z = -2 / 1.6330 = -1.2247, 1.2247, 0.
    a: 0.2 x 1.2247 - 0.8 x 1.2247 = -0.7348; b: 0.8 x 1.2247 = 0.9798; c: -0.2 x 1.2247 = -0.2449.
    """
    found = combined(part(a=9, b=6, c=3), part(a=0, b=4, c=2), "zscore")
    assert found == pytest.approx({"a": -0.734847, "b": 0.979796, "c": -0.244949}, abs=1e-6)


def test_the_sum_takes_a_hundred_times_the_other_score_and_bm25_as_it_is():
    """a: 12 + 100 x 0.2 = 32; b: 7 + 100 x 0.8 = 87."""
    assert combined(part(a=12, b=7), part(a=0.2, b=0.8), "sum") == pytest.approx({"a": 32.0, "b": 87.0})


def test_other_weights():
    """0.5 each: a 0.5 x 1 + 0.5 x 0, b the other way round."""
    assert combined(part(a=2, b=1), part(a=1, b=2), "minmax", [0.5, 0.5]) == pytest.approx({"a": 0.5, "b": 0.5})


def test_a_document_that_one_run_lacks_counts_as_the_lowest_there():
    """BM25 a 10, b 4; the other b 3, c 1. minmax: a 0.1 x 1 + 0.9 x 0, b 0.1 x 0 + 0.9 x 1, c 0.1 x 0 + 0.9 x 0.

    zscore: BM25 1, -1, the other 1, -1: a 0.2 x 1 + 0.8 x -1 = -0.6, b -0.2 + 0.8 = 0.6, c -0.2 - 0.8 = -1.
    sum: a 10 + 100 x 1 = 110, b 4 + 300 = 304, c 4 + 100 = 104.
    """
    one, other = part(a=10, b=4), part(b=3, c=1)
    assert combined(one, other, "minmax") == pytest.approx({"a": 0.1, "b": 0.9, "c": 0.0})
    assert combined(one, other, "zscore") == pytest.approx({"a": -0.6, "b": 0.6, "c": -1.0})
    assert combined(one, other, "sum") == pytest.approx({"a": 110.0, "b": 304.0, "c": 104.0})


@pytest.mark.parametrize("method", ["minmax", "zscore"])
def test_equal_scores_of_a_run_leave_the_order_to_the_other(method):
    found = combined(part(a=5, b=5, c=5), part(a=1, b=3, c=2), method)
    assert sorted(found, key=found.get, reverse=True) == ["b", "c", "a"]
    assert all(np.isfinite(list(found.values())))
    assert combined(part(a=5), part(a=1), method) == {"a": 0.0}


def test_a_run_that_has_nothing_for_a_query_adds_nothing():
    empty = part()
    assert combined(empty, part(a=1, b=3), "minmax") == pytest.approx({"a": 0.0, "b": 0.9})
    assert combined(part(a=1, b=3), empty, "sum") == pytest.approx({"a": 1.0, "b": 3.0})
    assert combined(empty, empty, "zscore") == {}


@pytest.fixture
def books(db):
    collection = make_collection("books")
    keys = {name: make_document(collection, f"text {name}", external_id=name).pk for name in "abc"}
    queries = {name: make_query(collection, f"query {name}", external_id=name).pk for name in ("q1", "q2", "q3")}
    bm25 = Run.objects.create(collection=collection, name="bm25", kind="bm25", state="ready")
    other = Run.objects.create(collection=collection, name="other", kind="imported", state="ready")
    rankings.store(bm25, {queries["q1"]: Ranked([keys[name] for name in "abc"], [12, 7, 2])})
    rankings.store(other, {queries["q1"]: Ranked([keys[name] for name in "abc"], [0.2, 0.8, 0.5])})
    rankings.store(other, {queries["q2"]: Ranked([keys["a"], keys["b"]], [1, 2])})
    return collection


def start(collection, name="hybrid", depth=2, **recipe):
    return making.start(collection=collection, name=name, kind="hybrid", recipe=recipe, depth=depth)


def test_a_hybrid_run_is_made_query_by_query_to_its_depth(books):
    """q1 as worked above, cut at two; q2 only the other has: 0.9 and 0; q3 neither: nothing, and not asked again."""
    run = start(books, runs=["bm25", "other"])
    making.work(claims.claim(Run), lambda: False)
    run.refresh_from_db()
    assert (run.state, run.recipe["method"], run.recipe["weights"]) == ("ready", "minmax", [0.1, 0.9])
    found = rankings.as_run(run)
    assert {query: list(documents) for query, documents in found.items()} == {
        "q1": ["b", "c"],
        "q2": ["b", "a"],
        "q3": [],
    }
    assert found["q1"] == pytest.approx({"b": 0.95, "c": 0.45}) and found["q2"] == pytest.approx({"b": 0.9, "a": 0.0})
    assert Ranking.objects.filter(run=run).count() == 3


@pytest.mark.parametrize(
    ("recipe", "problem"),
    [
        ({"runs": ["bm25"]}, "two or more"),
        ({"runs": ["bm25", "bm25"]}, "two or more"),
        ({"runs": ["bm25", "nobody"]}, "books has no run nobody"),
        ({"runs": ["bm25", "other"], "method": "magic"}, "magic is no way"),
        ({"runs": ["bm25", "other"], "weights": [1]}, "one for each of the 2 runs"),
        ({"runs": ["bm25", "other"], "weights": [1, "x"]}, "one for each of the 2 runs"),
        ({"runs": ["bm25", "other"], "weights": [1, float("nan")]}, "one for each of the 2 runs"),
        ({"runs": ["bm25", "other"], "weights": [0, 0]}, "one for each of the 2 runs"),
        ({"runs": ["bm25", "other"], "depht": 1}, "not depht"),
    ],
)
def test_a_hybrid_that_cannot_be_made_is_refused(books, recipe, problem):
    with pytest.raises(BadInput, match=problem):
        start(books, **recipe)
    assert not Run.objects.filter(kind="hybrid").exists()


def test_a_run_that_is_not_ready_makes_no_hybrid(books):
    Run.objects.filter(name="other").update(state="running")
    with pytest.raises(BadInput, match="run other of books is not ready"):
        start(books, runs=["bm25", "other"])
