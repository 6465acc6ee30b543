"""Hybrids of a reranked run and BM25, worked by hand (ERank, appendix G)."""

import numpy as np
import pytest

from benchmark.models import Ranking, Run
from benchmark.runs import hybrid_scores, rankings
from benchmark.runs.rankings import RankedQuery
from corpus.errors import BadInput
from corpus.search.bm25 import Index, index_for
from tests.called import call
from tests.factories import make_collection, make_document, make_query
from tests.rankings import start_run, work_on

BM25 = np.array([12.0, 8.0, 4.0, 0.0])
MARGINS = np.array([0.0, 2.0, -2.0, 1.0])


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("minmax", [0.550000, 0.966667, 0.033333, 0.723049]),
        ("zscore", [0.107453, 0.989093, -1.310844, 0.214298]),
        ("sum", [62.000000, 96.079708, 15.920292, 73.105858]),
    ],
)
def test_the_three_ways_by_hand(method, expected):
    """Sigmoids 0.5, 0.880797, 0.119203, 0.731059; the order of all three is d2, d4, d1, d3."""
    scores = hybrid_scores.sigmoid(MARGINS)
    assert scores == pytest.approx([0.5, 0.880797, 0.119203, 0.731059], abs=1e-6)
    found = hybrid_scores.combine_scores(BM25, scores, method)
    assert found == pytest.approx(expected, abs=1e-6)
    assert np.argsort(-found).tolist() == [1, 3, 0, 2]


@pytest.mark.parametrize("method", ["minmax", "zscore"])
def test_equal_scores_leave_the_order_to_the_others(method):
    assert hybrid_scores.sigmoid(np.array([-1e4, 1e4, 0.0])).tolist() == [0.0, 1.0, 0.5]
    weighted = hybrid_scores.combine_scores(np.array([2.0, 1]), np.array([1.0, 2]), "minmax", [0.5, 0.5])
    assert weighted == pytest.approx([0.5, 0.5])
    found = hybrid_scores.combine_scores(np.full(3, 5.0), np.array([1.0, 3, 2]), method)
    assert np.argsort(-found).tolist() == [1, 2, 0] and np.isfinite(found).all()
    assert hybrid_scores.combine_scores(np.array([5.0]), np.array([1.0]), method).tolist() == [0.0]
    assert hybrid_scores.combine_scores(np.empty(0), np.empty(0), method).tolist() == []


def test_an_index_scores_documents_that_a_search_would_not_return():
    texts = {30: "cat mat", 20: "cat cat dog", 10: "bird"}
    index = Index.build(texts.items())
    best = dict(index.search("cat dog", 1))
    found = index.scores("cat dog", [10, 20, 30, 99])
    assert found[0] == 0 and found[3] == 0 and found[1] == pytest.approx(best[20])
    assert 0 < found[2] < found[1], "which a search for the best one leaves out"
    assert index.holds([10, 20, 30]) and not index.holds([10, 99]) and Index.build([]).holds([10])


TEXTS = {
    "d1": "lift of a wing",
    "d2": "wing and plate",
    "d3": "heat of a plate",
    "d4": "a boundary layer",
    "d5": "wing lift wing lift wing lift",
}


@pytest.fixture
def wings(settings, tmp_path, db):
    """BM25 finds d5 best for q1; the reranked run has d1 to d4 and does not know it. q2 has one candidate, q3 none."""
    settings.VAR = tmp_path
    collection = make_collection("wings")
    keys = {name: make_document(collection, text, external_id=name).pk for name, text in TEXTS.items()}
    queries = {name: make_query(collection, "wing lift", external_id=name).pk for name in ("q1", "q2", "q3")}
    run = Run.objects.create(collection=collection, name="reranked", kind="imported", state="ready")
    given = [keys[name] for name in ("d2", "d4", "d1", "d3")]
    rankings.store(run, {queries["q1"]: RankedQuery(given, [2.0, 1.0, 0.0, -2.0])})
    rankings.store(run, {queries["q2"]: RankedQuery([keys["d4"]], [0.5])})
    return collection


def start(collection, name="hybrid", depth=10, **recipe):
    return start_run(collection, "hybrid", name, depth=depth, **recipe)


@pytest.mark.parametrize("method", ["minmax", "zscore", "sum"])
def test_candidates_are_those_of_the_reranked_run_and_each_has_its_own_bm25_score(wings, method):
    """d5 is BM25's best and no candidate; d4 has not one word of the query and is scored all the same."""
    run = work_on(start(wings, run="reranked", method=method, k1=0.9, b=0.4))
    assert (run.state, run.error) == ("ready", "")
    recipe = run.recipe
    assert (recipe["k1"], recipe["b"], recipe["scores"], recipe["run"]) == (0.9, 0.4, "margins", "reranked")
    index, found = index_for(wings, k1=0.9, b=0.4), rankings.as_run(run)
    by_name = {one.external_id: one.pk for one in wings.document_set.all()}
    names = ["d1", "d2", "d3", "d4"]
    assert index.search("wing lift", 1)[0][0] == by_name["d5"]
    own = index.scores("wing lift", [by_name[name] for name in names])
    assert own[0] > own[1] > own[2] == own[3] == 0
    expected = hybrid_scores.combine_scores(own, hybrid_scores.sigmoid(np.array([0.0, 2.0, -2.0, 1.0])), method)
    assert found["q1"] == pytest.approx(dict(zip(names, expected.tolist(), strict=True)), rel=1e-5)
    assert list(found["q2"]) == ["d4"] and found["q3"] == {}
    assert Ranking.objects.filter(run=run).count() == 3


def test_shares_are_taken_as_they_are_and_a_recipe_may_say_otherwise(wings):
    shares = Run.objects.create(collection=wings, name="shares", kind="imported", state="ready")
    (query,) = (one.pk for one in rankings.current_queries(wings) if one.external_id == "q1")
    documents = list(Ranking.objects.get(run__name="reranked", query=query).documents)
    rankings.store(shares, {query: RankedQuery(documents, [0.9, 0.8, 0.3, 0.0])})
    assert start(wings, "plain", run="shares").recipe["scores"] == "plain"
    assert start(wings, "told", run="shares", scores="margins").recipe["scores"] == "margins"
    run = work_on(start(wings, "sum", run="shares", method="sum"))
    own = index_for(wings).scores("wing lift", documents)
    expected = [0.9 * 100 + own[0], 0.8 * 100 + own[1], 0.3 * 100 + own[2], own[3]]
    assert sorted(rankings.as_run(run)["q1"].values()) == pytest.approx(sorted(expected), rel=1e-5)


@pytest.mark.parametrize("method", ["minmax", "zscore", "sum"])
def test_an_answer_without_a_grade_changes_its_own_query_alone(wings, method):
    """ERank's runs hold grades times their probability, 0 to 10, and -1 where an answer has no grade."""
    queries = {query.external_id: query.pk for query in rankings.current_queries(wings)}
    documents = list(Ranking.objects.get(run__name="reranked", query=queries["q1"]).documents)
    whole = {"q1": [9.0, 6.5, 5.0, 2.0], "q2": [8.0, 7.5, 3.0, 0.5], "q3": [9.5, 9.0, 4.0, 1.0]}
    runs = {}
    for name, of_q1 in {"clean": whole["q1"], "one-bad": [9.0, 6.5, -1.0, 2.0]}.items():
        run = Run.objects.create(collection=wings, name=name, kind="imported", state="ready")
        grades = whole | {"q1": of_q1}
        rankings.store(run, {queries[key]: RankedQuery(documents, values) for key, values in grades.items()})
        made = work_on(start(wings, f"hybrid-of-{name}", run=name, method=method))
        assert made.state == "ready", made.error
        runs[name] = rankings.as_run(made)
    assert [runs["one-bad"][key] for key in ("q2", "q3")] == [runs["clean"][key] for key in ("q2", "q3")]
    own = index_for(wings).scores("wing lift", documents)
    expected = hybrid_scores.combine_scores(own, np.array([9.0, 6.5, 2.0, 2.0]), method)
    assert sorted(runs["one-bad"]["q1"].values()) == pytest.approx(sorted(expected), rel=1e-5)


def test_the_kind_of_the_model_decides_and_of_imported_scores_the_scores_do(wings):
    (query,) = (query.pk for query in rankings.current_queries(wings) if query.external_id == "q1")
    documents = list(Ranking.objects.get(run__name="reranked", query=query).documents)
    cases = {
        "margins": ("imported", {}, [2.0, -0.5, -1.0, -3.0]),
        "graded": ("imported", {}, [9.0, 6.5, -1.0, 0.0]),
        "shares": ("imported", {}, [0.9, 0.4, 0.1, 0.0]),
        "erank": ("rerank-folder", {"writes": "grades"}, [9.0, 6.5, 5.0, 2.0]),
        "causal": ("rerank-folder", {"writes": "margins"}, [9.0, 6.5, 5.0, 2.0]),
    }
    for name, (kind, recipe, scores) in cases.items():
        run = Run.objects.create(collection=wings, name=name, kind=kind, state="ready", recipe=recipe)
        rankings.store(run, {query: RankedQuery(documents, scores)})
    kinds = {name: start(wings, f"of-{name}", run=name).recipe["scores"] for name in cases}
    assert kinds == {
        "margins": "margins", "graded": "grades", "shares": "plain", "erank": "grades", "causal": "margins",
    }  # fmt: skip
    assert hybrid_scores.impute_ungraded(np.array([-1.0, -1.0])).tolist() == [0.0, 0.0]


def test_the_name_of_a_bm25_run_stands_for_its_parameters(wings):
    Run.objects.create(collection=wings, name="bm25", kind="bm25", state="ready", recipe={"k1": 0.9, "b": 0.4})
    recipe = start(wings, runs=["bm25", "reranked"], method="zscore").recipe
    assert (recipe["run"], recipe["k1"], recipe["b"], recipe["weights"]) == ("reranked", 0.9, 0.4, [0.2, 0.8])


def test_the_run_is_cut_at_its_depth_and_a_document_that_changed_since_is_not_scored_as_0(wings):
    whole, top = (work_on(start(wings, f"to-{depth}", depth=depth, run="reranked")) for depth in (10, 2))
    both = [rankings.as_run(run)["q1"] for run in (whole, top)]
    assert list(both[1].items()) == list(both[0].items())[:2]
    wings.document_set.filter(external_id="d3").update(is_current=False)
    run = work_on(start(wings, run="reranked"))
    assert run.state == "failed" and "run reranked" in run.error and "changed or been removed" in run.error


@pytest.mark.parametrize(
    ("recipe", "problem"),
    [
        ({}, "needs a reranked run"),
        ({"run": "nobody"}, "wings has no run nobody"),
        ({"run": "unready"}, "Run unready of wings is not ready"),
        ({"runs": ["reranked"]}, "Name two runs"),
        ({"runs": ["reranked", "reranked"]}, "Name two runs"),
        ({"runs": ["reranked", "other"]}, "Run reranked is not a BM25 run made here"),
    ],
)
def test_a_hybrid_that_cannot_be_made_is_refused(wings, recipe, problem):
    Run.objects.create(collection=wings, name="unready", kind="imported")
    with pytest.raises(BadInput, match=problem):
        start(wings, **recipe)
    assert not Run.objects.filter(kind="hybrid").exists()


def test_the_command_takes_the_reranked_run_and_bm25s_parameters(wings):
    options = ("--run", "reranked", "--method", "zscore", "--k1", "0.9", "--b", "0.4")
    told = call("retrieve", "wings", "--system", "hybrid", *options, "--json").json
    assert (told["run"], told["scores"]) == ("hybrid-zscore", "margins")
    assert work_on(Run.objects.get(name="hybrid-zscore")).recipe["k1"] == 0.9
    assert "reranked: log odds" in call("retrieve", "wings", "--system", "hybrid", *options).out
