"""alpha-nDCG and weighted aspect recall (BRIGHT-Pro appendix C), worked by hand, and `evaluate --aspects`."""

import json
from math import log2
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark.measures.aspects import QueryAspects, a_recall, alpha_ndcg, evaluate_aspects
from corpus.aspects.files import AspectRow
from corpus.errors import BadInput
from tests.called import call

# Weights 0.5, 0.3, 0.2; x and y support the first aspect, z the second, and b both the second and the third.
ASPECTS = QueryAspects(
    [0.5, 0.3, 0.2], {"x": frozenset([0]), "y": frozenset([0]), "z": frozenset([1]), "b": frozenset([1, 2])}
)


def test_alpha_ndcg_and_aspect_recall_by_hand():
    # x 0.5 at rank 1, y 0.5 / 2 at rank 2 (its aspect was seen once), noise at rank 3, b 0.3 + 0.2 at rank 4.
    got = 0.5 + 0.25 / log2(3) + 0 + 0.5 / log2(5)
    # Greedy ideal: y and then b gain 0.5 each (x, too, before y is chosen), then x 0.25 before z 0.3 / 2 = 0.15.
    best = 0.5 + 0.5 / log2(3) + 0.25 / log2(4) + 0.15 / log2(5)
    assert alpha_ndcg(["x", "y", "noise", "b"], ASPECTS, 4) == pytest.approx(got / best)
    assert alpha_ndcg(["x", "y", "noise", "b"], ASPECTS, 2) == pytest.approx(
        (0.5 + 0.25 / log2(3)) / (0.5 + 0.5 / log2(3))
    )
    # x 0.5 at rank 1, x again 0, y 0.5 / 2 at rank 3: its aspect was seen once, not twice.
    got = 0.5 + 0 + 0.25 / log2(4)
    best = 0.5 + 0.5 / log2(3) + 0.25 / log2(4)
    assert alpha_ndcg(["x", "x", "y"], ASPECTS, 3) == pytest.approx(got / best)
    assert alpha_ndcg(["x", "y"], ASPECTS, 3) == pytest.approx((0.5 + 0.25 / log2(3)) / best)
    assert a_recall(["x", "y", "noise", "b"], ASPECTS, 3) == pytest.approx(0.5)
    assert a_recall(["x", "y", "noise", "b"], ASPECTS, 4) == pytest.approx(1.0)
    assert a_recall([], ASPECTS, 10) == 0


def test_as_in_the_paper_a_document_counts_for_its_heaviest_aspect_alone():
    one = ASPECTS.with_single_aspects()
    assert one.supports["b"] == frozenset([1])
    assert a_recall(["x", "b"], one, 10) == pytest.approx(0.8)
    # Now b gains 0.3 only: y 0.5 (the last by id), then z 0.3 as b would, then x 0.25, then b 0.15.
    best = 0.5 + 0.3 / log2(3) + 0.25 / log2(4)
    assert alpha_ndcg(["b", "x"], one, 3) == pytest.approx((0.3 + 0.5 / log2(3)) / best)


@given(st.permutations(["x", "y", "z", "b", "noise"]), st.integers(1, 6))
def test_the_greedy_ideal_is_never_beaten_here_and_values_are_shares(ranking, cut):
    assert 0 <= alpha_ndcg(ranking, ASPECTS, cut) <= 1 + 1e-12
    assert 0 <= a_recall(ranking, ASPECTS, cut) <= 1 + 1e-12


EXAMPLES = Path(__file__).parents[4] / "shared" / "data" / "worked_examples.json"


@pytest.mark.skipif(not EXAMPLES.exists(), reason="the worked examples are not beside the project")
def test_published_cases_of_alpha_ndcg_and_aspect_recall():
    checked = 0
    for case in json.loads(EXAMPLES.read_text())["alpha_ndcg"]:
        supports: dict[str, set[int]] = {}
        for place, documents in enumerate(case["subtopics"].values()):
            for document in documents:
                supports.setdefault(document, set()).add(place)
        aspects = len(case["subtopics"])
        equal = QueryAspects([1 / aspects] * aspects, {name: frozenset(places) for name, places in supports.items()})
        found = alpha_ndcg(case["run"], equal, case["k"], alpha=case["alpha"])
        assert found == pytest.approx(case["alpha_ndcg"], abs=1e-9)
        if "strec" in case:
            assert a_recall(case["run"], equal, case["k"]) == pytest.approx(case["strec"])
        checked += 1
    assert checked == 4


IDS = ["d1", "d10", "d2", "D3", "d4", "d5", "a", "b"]
aspects = st.dictionaries(st.sampled_from(IDS), st.frozensets(st.integers(0, 4), min_size=1, max_size=4), min_size=1)


@given(aspects, st.permutations([*IDS, "x", "y"]), st.integers(0, 10), st.data())
def test_with_equal_weights_alpha_ndcg_is_that_of_ir_measures(supports, order, length, data):
    """Also a document under several aspects, a cut behind the last document, and a run without anything."""
    import ir_measures
    from ir_measures import Qrel, ScoredDoc

    cut, alpha = data.draw(st.sampled_from([1, 2, 3, 5, 10, 20])), data.draw(st.sampled_from([0.5, 0.5, 0.25, 0.9]))
    ranking = order[:length] or ["x"]
    qrels = [Qrel("q", document, 1, str(place)) for document, places in supports.items() for place in places]
    run = [ScoredDoc("q", document, float(-rank)) for rank, document in enumerate(ranking)]
    measure = ir_measures.alpha_nDCG(alpha=alpha) @ cut
    [theirs] = [one.value for one in ir_measures.iter_calc([measure], qrels, run)]
    equal = QueryAspects([0.2] * 5, supports)
    assert alpha_ndcg(ranking, equal, cut, alpha=alpha) == pytest.approx(theirs, abs=1e-6)


def rows() -> list[AspectRow]:
    return [
        AspectRow(1, "q1", "a1", "Flow", "", 5, ("x", "y")),
        AspectRow(2, "q1", "a2", "Heat", "", 3, ("z", "b")),
        AspectRow(3, "q1", "a3", "Snow", "", 2, ("b",)),
        AspectRow(4, "q2", "a1", "Other", "", 1, ("x",)),
    ]


def test_a_query_that_the_run_lacks_counts_nothing_and_both_forms_are_measured():
    found = evaluate_aspects(rows(), {"q1": {"x": 3, "b": 2}}, ["A-Recall@10"])
    assert found.missing == ["q2"] and found.queries == 2
    assert found.per_query["A-Recall@10"] == {"q1": pytest.approx(1.0), "q2": 0}
    assert found.means == {"A-Recall@10": pytest.approx(0.5), "A-Recall-one@10": pytest.approx(0.4)}
    with pytest.raises(BadInput, match="not a measure of aspects"):
        evaluate_aspects(rows(), {}, ["A-Recall@0"])


def test_the_command_prints_both_beside_the_others(tmp_path):
    aspects, qrels, run = tmp_path / "aspects", tmp_path / "qrels", tmp_path / "run"
    fields = ("query_id", "aspect_id", "text", "rationale", "importance", "doc_ids")
    values = [(row.query, row.aspect, row.text, "", row.importance, list(row.documents)) for row in rows()]
    lines = [json.dumps(dict(zip(fields, row, strict=True))) + "\n" for row in values]
    aspects.write_text("".join(lines))
    qrels.write_text("q1 0 x 1\nq1 0 b 1\nq2 0 x 1\n")
    run.write_text("q1 Q0 x 1 3 t\nq1 Q0 b 2 2 t\n")

    def evaluate(measures, *more, files=("--aspects", aspects)):
        return call("evaluate", "--qrels", qrels, "--run", run, *files, "--measures", measures, *more, "--json")

    found = evaluate("R@10 A-Recall@10", "--per-query").json
    assert found["measures"] == pytest.approx({"R@10": 0.5, "A-Recall@10": 0.5, "A-Recall-one@10": 0.4})
    assert found["aspects"] == {"queries": 2, "missing_queries": 1}
    assert found["per_query"]["A-Recall@10"]["q2"] == 0
    names = {"R@10", "alpha-nDCG@10", "alpha-nDCG-one@10", "A-Recall@10", "A-Recall-one@10"}
    assert set(evaluate("R@10").json["measures"]) == names
    refused = evaluate("A-Recall@10", files=())
    assert (refused.code, refused.out) == (2, "") and refused.err.startswith("--aspects: ")
    aspects.write_text("{}\n" + lines[0])
    refused = evaluate("R@10")
    assert (refused.code, refused.out) == (2, "") and "line 1:" in refused.err
