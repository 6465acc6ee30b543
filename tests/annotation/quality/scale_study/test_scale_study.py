"""The scale study: hand-worked measures, and three scales of one model through the engine (ERank 3.2)."""

import math

import pytest

from annotation.quality.scale_study.scales import ScoredScale, measure_scale, ndcg, score_of
from corpus.models import Assessor, Judgment
from judges.records import Turn
from tests.called import call
from tests.engine_parts import _standing_worker, judge, make_judge, make_panel, worker
from tests.factories import make_collection, make_document, make_pair, make_query

__all__ = ["_standing_worker", "worker"]


def test_scores_and_measures_by_hand():
    rows = [(1, 0.999995, 1), (1, 0.5, 0), (1, 0.5, 1), (2, 0.0, 0), (2, 0.0, None)]
    scored = [ScoredScale(*row) for row in rows]
    found = measure_scale(scored)
    assert found["histogram"] == [2, 0, 0, 0, 0, 2, 0, 0, 0, 1]
    assert (found["certain_no"], found["certain_yes"]) == (0.4, 0.2)
    assert found["ties"] == pytest.approx(2 / 4)  # one of three pairs of query 1, the one pair of query 2
    # query 1: 1, then 0 and 1 tied at ranks 2 and 3: each half a gain; ideal 1 and 1
    gained = 1 + 0.5 / math.log2(3) + 0.5 / math.log2(4)
    assert found["ndcg"] == pytest.approx(gained / (1 + 1 / math.log2(3)))
    assert found["queries"] == 1 and ndcg(scored[3:]) is None
    assert [measure_scale([])[name] for name in ("ties", "certain_no", "ndcg")] == [None, None, None]

    assert score_of(Turn(1, "", score=8, probabilities={"8": 0.5}), 10) == 0.4
    assert score_of(Turn(1, "", score=8), 10) == 0.8
    assert score_of(Turn(1, "", probabilities={"yes": 0.6, "no": 0.2}), 1) == pytest.approx(0.75)
    assert score_of(Turn(0, ""), 1) == 0.0


@pytest.mark.slow
def test_three_scales_of_one_model(worker, model_server):
    books = make_collection("books")
    gold = Assessor.objects.create(collection=books, kind=Assessor.Kind.REFERENCE, name="gold")
    query = make_query(books, "What is a mapping?")
    for number, grade in enumerate((1, 0, 0)):
        pair = make_pair(books, query, make_document(books, f"Text number {number}."))
        Judgment.objects.create(pair=pair, assessor=gold, grade=grade, step="import")
    make_panel(model_server)
    words = [{"verdict": "yes", "contains": "number 0"}, {"verdict": "yes", "contains": "number 1"}, {"verdict": "no"}]
    grades = [{"score": 9, "contains": "number 0"}, {"score": 6, "contains": "number 1"}, {"score": 1}]
    model_server.script(m=[*words], n=[*grades])
    make_judge(model_server, "binary", "m")
    make_judge(model_server, "tenth", "n", parameters={"scale": "0-10"})
    for name in ("binary", "tenth"):
        judge("--policy", "single", "--judges", name, check=True)
    found = call("scale_study", "books", "--judges", "binary,tenth", "--json").json
    coarse, fine = found["scales"]
    assert (coarse["ties"], fine["ties"]) == (pytest.approx(1 / 3), 0.0)
    assert fine["ndcg"] == 1.0 and coarse["ndcg"] < 1.0
    assert fine["histogram"] == [0, 1, 0, 0, 0, 0, 1, 0, 0, 1]
    refused = call("scale_study", "books", "--judges", "binary,v1")
    assert refused.code == 2 and "v1 has not voted" in refused.err
