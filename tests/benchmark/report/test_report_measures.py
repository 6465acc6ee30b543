"""Measures of a report from arrays: those of ir_measures, published examples, and cases worked by hand."""

import json
from math import log2
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark.measures import arrays as measures
from benchmark.measures.graded_runs import NONE, Version, encode_pairs, stack_rankings
from benchmark.measures.rankings import evaluate_run, rank_documents

EXAMPLES = Path(__file__).parents[4] / "shared" / "data" / "worked_examples.json"


def graded(qrels, run, k, relevant_from=1):
    """One run, ordered as trec_eval orders it, over the qrels' queries; documents and queries as numbers."""
    names = sorted({doc for of in (qrels, run) for one in of.values() for doc in one})
    keys = {name: place + 1 for place, name in enumerate(names)}
    queries = {name: place for place, name in enumerate(sorted(qrels))}
    rankings = {
        queries[query]: np.array([keys[doc] for doc in rank_documents(scores)], np.int64)
        for query, scores in run.items()
        if query in queries
    }
    judged = {
        queries[query]: (np.array([keys[doc] for doc in grades], np.int64), np.array(list(grades.values()), np.int16))
        for query, grades in qrels.items()
    }
    documents = stack_rankings([rankings], range(len(queries)), k)
    version = Version.of(judged, range(len(queries)))
    return measures.Graded(documents, version.look_up(encode_pairs(documents)), version, relevant_from)


def value(measure: str, *args: Any) -> float:
    """The mean over the queries."""
    return float(measures.BY_VERSION[measure](graded(*args)).mean())


@pytest.mark.skipif(not EXAMPLES.exists(), reason="the worked examples are not beside the project")
def test_published_cases_of_ndcg_with_two_gains_judged_and_the_bridge_code():
    cases = json.loads(EXAMPLES.read_text())
    for case in cases["ndcg"][:2]:
        grades = {f"d{place}": grade for place, grade in enumerate(case["judged_grades_all"])}
        run = {f"d{place}": 100.0 - place for place in range(len(case["retrieved_grades"]))}
        assert value("ndcg", {"q": grades}, {"q": run}, case["k"]) == pytest.approx(case["linear"])
        assert value("ndcg_exp", {"q": grades}, {"q": run}, case["k"]) == pytest.approx(case["exponential"])
    bridge, ties = cases["ndcg"][2:4]
    perfect = {f"d{place}": 1 for place in range(bridge["R"])}
    best = {"q": {doc: 1.0 for doc in perfect}}
    assert value("ndcg_bridge", {"q": perfect}, best, bridge["k"]) == pytest.approx(bridge["perfect_top10_value"])
    assert value("ndcg", {"q": perfect}, best, bridge["k"]) == pytest.approx(bridge["standard_value"])
    for number in ("1", "2"):
        got = value("ndcg", {"q": ties["qrels"]}, {"q": ties[f"run{number}"]}, 10)
        assert got == pytest.approx(ties[f"ndcg{number}"], abs=5e-5)
    judged = cases["judged_at_k"][0]
    assert value("judged", judged["qrels"], judged["run"], 10) == judged["judged@10"]
    assert value("judged", judged["qrels"], judged["run"], 3) == pytest.approx(judged["judged@3"])
    assert value("unjudged", judged["qrels"], judged["run"], 10) == judged["unjudged@10_over_retrieved"]


def test_hole_at_k_by_hand():
    """Of a b c d the qrels know a. Then b (1), c (0) and d (2) are judged: b and d are holes. At 5: 2/5; at 3: 1/3."""
    run = {"q": {"a": 4.0, "b": 3.0, "c": 2.0, "d": 1.0}}
    then, now = {"q": {"a": 1}}, {"q": {"a": 1, "b": 1, "c": 0, "d": 2, "elsewhere": 2}}
    for k, expected in ((5, 2 / 5), (3, 1 / 3)):
        assert measures.hole_at_k(graded(then, run, k), graded(now, run, k))[0, 0] == pytest.approx(expected)
    strict = measures.hole_at_k(graded(then, run, 5, 2), graded(now, run, 5, 2))
    assert strict[0, 0] == pytest.approx(1 / 5)  # grades from 2: d alone
    # A pair whose grade rose is no hole, because the qrels knew it.
    run = {"q": {"a": 1.0}}
    assert measures.hole_at_k(graded({"q": {"a": 0}}, run, 1), graded({"q": {"a": 1}}, run, 1))[0, 0] == 0


def test_a_query_that_the_run_lacks_counts_0_in_every_measure():
    qrels = {"q1": {"a": 1}, "q2": {"b": 1}}
    for measure in measures.BY_VERSION:
        found = measures.BY_VERSION[measure](graded(qrels, {"q1": {"a": 1.0, "z": 0.5}}, 10))[0]
        assert found[1] == 0, measure
        assert found[0] == (0.5 if measure in ("judged", "unjudged") else 1.0), measure
    for measure in measures.RANKING:
        assert value(measure, {"q": {"a": 0}}, {"q": {"a": 1.0}}, 10) == 0, "nor does one without relevant documents"


grades = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 3), min_size=1)
scores = st.dictionaries(st.sampled_from("abcdefghxyz"), st.sampled_from([0.0, 0.5, 1.0, 1.0 + 1e-9, 2.0]), min_size=1)


@given(
    st.dictionaries(st.sampled_from(["q1", "q2", "q3"]), grades, min_size=1),
    st.dictionaries(st.sampled_from(["q1", "q2", "q3"]), scores),
    st.integers(1, 8),
    st.integers(1, 3),
)
def test_what_ir_measures_takes_from_trec_eval_is_equal_with_ties_and_missing_queries(qrels, run, k, level):
    """And those are trec_eval's own figures: test_evaluate.py."""
    names = {"ndcg": f"nDCG@{k}", "recall": f"R(rel={level})@{k}", "hit": f"Success(rel={level})@{k}"}
    theirs = evaluate_run(qrels, run, list(names.values())).means
    for ours, name in names.items():
        assert value(ours, qrels, run, k, level) == pytest.approx(theirs[name]), name


@given(grades, st.permutations("abcdefgh"), st.integers(1, 8))
def test_gains_from_their_definition(given_grades, order, k):
    """DREAM J.1 term by term."""
    run = {"q": {doc: float(-place) for place, doc in enumerate(order)}}

    def dcg(values: list[int]) -> float:
        return sum((2**grade - 1) / log2(place + 2) for place, grade in enumerate(values[:k]))

    best = dcg(sorted(given_grades.values(), reverse=True))
    expected = dcg([given_grades.get(doc, 0) for doc in order]) / best if best else 0.0
    assert value("ndcg_exp", {"q": given_grades}, run, k) == pytest.approx(expected)


def test_arrays_by_hand():
    documents = stack_rankings([{7: np.array([3, 1]), 9: np.array([2])}, {9: np.array([5, 6, 7])}], [7, 9, 11], 2)
    assert documents.tolist() == [[[3, 1], [2, NONE], [NONE, NONE]], [[NONE, NONE], [5, 6], [NONE, NONE]]]
    version = Version.of({9: (np.array([6, 2]), np.array([1, -2])), 12: (np.array([3]), np.array([3]))}, [7, 9, 11])
    assert version.look_up(encode_pairs(documents)).tolist() == [
        [[-1, -1], [-1, -1], [-1, -1]],
        [[-1, -1], [-1, 1], [-1, -1]],
    ]
    assert version.at_least(1).tolist() == [0, 1, 0] and version.levels == [1]
    assert Version.of({}, [7]).look_up(encode_pairs(documents[:, :1])).tolist() == [[[-1, -1]], [[-1, -1]]]
