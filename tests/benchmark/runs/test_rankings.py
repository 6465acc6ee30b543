"""Rankings are stored in trec_eval's order, without excluded ids, and come back as arrays and as TREC text."""

import numpy as np
import pytest

from benchmark.models import Ranking, Run
from benchmark.runs import rankings
from benchmark.runs.rankings import RankedQuery
from corpus.errors import BadInput
from jobs import leases
from tests.factories import make_collection, make_document, make_query

pytestmark = pytest.mark.django_db


@pytest.fixture
def books():
    """Documents a, b, c, d and queries q1, q2."""
    collection = make_collection("books")
    keys = {name: make_document(collection, f"text {name}", external_id=name).pk for name in "abcd"}
    queries = {name: make_query(collection, f"query {name}", external_id=name).pk for name in ("q1", "q2")}
    return collection, keys, queries


def make_run(collection, name="one", **values):
    return Run.objects.create(collection=collection, name=name, kind="imported", state="ready", **values)


@pytest.mark.parametrize(
    ("scores", "order"), [({"a": 1.0, "c": 2.0, "d": 1.0, "b": 1.0}, "cdba"), ({"a": 0.1 + 1e-12, "b": 0.1}, "ba")]
)
def test_scores_that_are_equal_on_32_bits_stand_by_document_id_descending(books, scores, order):
    """0.1 and 0.1 + 1e-12 are one float32, as in trec_eval."""
    collection, keys, queries = books
    run = make_run(collection)
    rankings.store(run, {queries["q1"]: RankedQuery([keys[name] for name in scores], list(scores.values()))})
    lines = list(rankings.write_trec(run))
    assert [line.split()[2] for line in lines] == list(order) == list(rankings.as_run(run)["q1"])
    assert lines[0] == f"q1 Q0 {order[0]} 1 {float(np.float32(scores[order[0]])):.9g} one\n"


def test_what_a_query_excludes_is_left_out_before_the_cut(books):
    collection, keys, queries = books
    query = make_query(collection, "query q3", external_id="q3", metadata={"excluded_ids": ["b", "N/A"]})
    run = make_run(collection, depth=2)
    found = RankedQuery([keys["b"], keys["a"], keys["c"]], [3.0, 2.0, 1.0])
    rankings.store(run, {query.pk: found, queries["q1"]: found})
    assert rankings.as_run(run) == {"q1": {"b": 3.0, "a": 2.0}, "q3": {"a": 2.0, "c": 1.0}}


def test_loading_gives_arrays_by_run_and_query_to_the_depth(books):
    collection, keys, queries = books
    one, other, empty = make_run(collection), make_run(collection, "other"), make_run(collection, "empty")
    rankings.store(one, {queries["q1"]: RankedQuery([keys["a"], keys["b"], keys["c"]], [3, 2, 1])})
    rankings.store(one, {queries["q2"]: RankedQuery([], [])})
    rankings.store(other, {queries["q2"]: RankedQuery([keys["d"]], [1])})
    found = rankings.load([one.pk, other.pk, empty.pk], 2)
    lists = {run: {query: row.tolist() for query, row in rows.items()} for run, rows in found.items()}
    of_one = {queries["q1"]: [keys["a"], keys["b"]], queries["q2"]: []}
    assert lists == {one.pk: of_one, other.pk: {queries["q2"]: [keys["d"]]}, empty.pk: {}}
    assert found[one.pk][queries["q1"]].dtype == np.int64
    assert rankings.load([one.pk])[one.pk][queries["q1"]].tolist() == [keys["a"], keys["b"], keys["c"]]


@pytest.mark.parametrize(
    ("documents", "scores", "problem"),
    [
        ("aa", [1, 2], "twice"),
        ("ab", [1, float("nan")], "not a number"),
        ("ab", [1, 1e39], "32 bits"),
        ("ab", [1], "too few"),
    ],
)
def test_a_ranking_that_is_none_is_refused(books, documents, scores, problem):
    collection, keys, queries = books
    with pytest.raises(BadInput, match=problem):
        rankings.store(make_run(collection), {queries["q1"]: RankedQuery([keys[name] for name in documents], scores)})
    assert not Ranking.objects.exists()


def test_a_query_that_has_a_ranking_keeps_it(books):
    collection, keys, queries = books
    run = make_run(collection)
    rankings.store(run, {queries["q1"]: RankedQuery([keys["a"]], [1])})
    rankings.store(run, {queries["q1"]: RankedQuery([keys["b"]], [1]), queries["q2"]: RankedQuery([keys["c"]], [1])})
    assert rankings.as_run(run) == {"q1": {"a": 1.0}, "q2": {"c": 1.0}}


def test_whoever_lost_the_run_writes_nothing(books):
    collection, keys, queries = books
    run = make_run(collection)
    Run.objects.filter(pk=run.pk).update(state="waiting")
    holder = leases.claim(Run)
    assert holder is not None and leases.cancel(run)
    with pytest.raises(leases.LeaseLost):
        rankings.store(holder, {queries["q1"]: RankedQuery([keys["a"]], [1])})
    assert not Ranking.objects.exists()
