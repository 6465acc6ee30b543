"""Static embeddings beside BM25, and reciprocal rank fusion of whole runs."""

import ir_measures
import numpy as np
import pytest
from ir_measures import nDCG

from annotation.models import Role
from benchmark.runs import hybrid_scores, rankings
from config.env import ROOT
from corpus.errors import BadOption
from corpus.importing.options import ImportOptions
from corpus.importing.service import ImportFiles, import_collection
from corpus.models import Collection, Document, Pair, Query
from corpus.search import static_embeddings
from tests.factories import client_of, make_member
from tests.rankings import make_run, make_texts, start_run, work_on

pytestmark = pytest.mark.skipif(
    not static_embeddings.is_available(), reason="wordllama has no wheel for this machine: static embeddings not run"
)
CRANFIELD = ROOT.parent / "shared" / "data" / "cranfield"
DOCUMENTS = {
    "d1": "The physician examined the sick child.",
    "d2": "The stock market fell sharply on Monday.",
    "d3": "A recipe for bread with flour and yeast.",
    "d4": "",
}


@pytest.fixture
def texts(db, settings, tmp_path):
    settings.VAR = tmp_path
    return make_texts("texts", DOCUMENTS, {"q1": "doctors treating ill kids", "q2": "share prices dropped"})


def test_vectors_have_length_one_and_a_text_without_a_known_piece_is_zeros():
    vectors = static_embeddings.embed(["doctors", "", "doctors " * 2000])
    assert vectors.shape == (3, 256) and vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 0, 1], abs=1e-5)
    assert static_embeddings.embed([]).shape == (0, 256)


def test_a_run_and_candidates_find_what_shares_no_word_with_the_query(texts):
    run = work_on(start_run(texts, "static", "static", depth=4))
    assert (run.state, run.error) == ("ready", "")
    found = rankings.as_run(run)
    assert next(iter(found["q1"])) == "d1" and next(iter(found["q2"])) == "d2"
    query, document = static_embeddings.embed(["doctors treating ill kids", DOCUMENTS["d1"]])
    assert found["q1"]["d1"] == pytest.approx(float(query @ document), abs=1e-5)
    bm25 = work_on(start_run(texts, "bm25", "bm25", depth=4))
    assert rankings.as_run(bm25) == {"q1": {}, "q2": {}}
    report = import_collection("texts", ImportFiles(options=ImportOptions(static=1)))
    assert report["new"]["pairs"] == 2
    pairs = Pair.objects.values_list("query__external_id", "document__external_id")
    assert set(pairs) == {("q1", "d1"), ("q2", "d2")}


def test_without_wordllama_runs_and_candidates_are_refused(texts, monkeypatch):
    monkeypatch.setattr(static_embeddings, "is_available", lambda: False)
    files = ImportFiles(options=ImportOptions(static=1))
    for option, make in (
        ("system", lambda: start_run(texts, "static", "static", depth=4)),
        ("static", lambda: import_collection("texts", files)),
    ):
        with pytest.raises(BadOption) as refused:
            make()
        assert [name for name, _sentence in refused.value.problems] == [option]
    assert not Pair.objects.exists()


def test_runs_of_different_documents_are_fused_over_their_union(texts):
    make_run(texts, "first", {"q1": ["d1", "d2"], "q2": ["d3"]})
    make_run(texts, "second", {"q1": ["d2", "d3"]})
    run = work_on(start_run(texts, "hybrid", "fused", depth=10, method="rrf", runs=("first", "second")))
    assert (run.state, run.error) == ("ready", "")
    fused = rankings.as_run(run)
    alice = client_of(make_member(texts, "alice", Role.ADMIN))
    page = alice.get(f"/c/texts/benchmark/runs/{run.pk}/").text
    assert "Hybrid" in page and "none (no model used)" in page
    assert list(fused["q1"]) == ["d2", "d1", "d3"] and list(fused["q2"]) == ["d3"]
    assert fused["q1"]["d2"] == pytest.approx(1 / 62 + 1 / 61, rel=1e-6)
    # d2 is second and first, d1 first alone, d3 second alone (k = 60).
    scores = hybrid_scores.fuse_ranks([[1, 2], [2, 3]])
    assert scores == pytest.approx({1: 1 / 61, 2: 1 / 62 + 1 / 61, 3: 1 / 62})
    assert hybrid_scores.fuse_ranks([]) == {}


def test_what_a_query_excludes_takes_no_rank_of_bm25(texts):
    """Fused with BM25 at once, or with a stored run of BM25: the same."""
    Document.objects.filter(external_id="d3").update(text="kids kids")
    Document.objects.filter(external_id="d2").update(text="kids fall on Monday")
    Query.objects.filter(external_id="q1").update(metadata={"excluded_ids": ["d3"]})
    make_run(texts, "first", {"q1": ["d1"]})
    work_on(start_run(texts, "bm25", "words", depth=10))
    at_once = work_on(start_run(texts, "hybrid", "at-once", depth=10, method="rrf", run="first"))
    stored = work_on(start_run(texts, "hybrid", "stored", depth=10, method="rrf", runs=("first", "words")))
    fused = rankings.as_run(at_once)["q1"]
    assert fused == rankings.as_run(stored)["q1"] and set(fused) == {"d1", "d2"}
    assert fused["d2"] == pytest.approx(1 / 61, rel=1e-6)


@pytest.mark.parametrize(
    ("recipe", "option"),
    [
        ({}, "runs"),
        ({"runs": ("first",)}, "runs"),
        ({"runs": ("first", "first")}, "runs"),
        ({"runs": ("first", "absent")}, "runs"),
        ({"runs": ("first", "second"), "run": "first"}, "run"),
        ({"runs": ("first", "second"), "weights": (0.5, 0.5)}, "weights"),
        ({"runs": ("first", "second"), "scores": "plain"}, "scores"),
    ],
)
def test_a_fusion_that_cannot_be_made_names_its_option(texts, recipe, option):
    for name in ("first", "second"):
        make_run(texts, name, {"q1": ["d1"]})
    with pytest.raises(BadOption) as refused:
        start_run(texts, "hybrid", "fused", depth=10, method="rrf", **recipe)
    assert [name for name, _sentence in refused.value.problems] == [option]


@pytest.mark.django_db
@pytest.mark.skipif(not CRANFIELD.is_dir(), reason="shared/data/cranfield is not beside the checkout: 1 test not run")
def test_figures_on_cranfield(settings, tmp_path):
    """nDCG@10 by another script, with English stop words and a full stop after the title: 0.369, 0.336, 0.389."""
    settings.VAR = tmp_path
    sources = {"corpus": [CRANFIELD / "cran.all.1400.xml"], "queries": [CRANFIELD / "cran.qry.xml"]}
    files = ImportFiles(**sources, options=ImportOptions(query_ids="position", empty="keep"))
    import_collection("cranfield", files)
    collection = Collection.objects.get(name="cranfield")
    runs = {name: work_on(start_run(collection, name, name, depth=100)) for name in ("bm25", "static")}
    runs["rrf"] = work_on(start_run(collection, "hybrid", "rrf", depth=100, method="rrf", runs=("bm25", "static")))
    qrels: dict[str, dict[str, int]] = {}
    for line in (CRANFIELD / "cranqrel.trec.txt").read_text().splitlines():
        query, _iteration, document, grade = line.split()
        qrels.setdefault(query, {})[document] = max(int(grade), 0)
    figures = {
        name: ir_measures.calc_aggregate([nDCG @ 10], qrels, rankings.as_run(run))[nDCG @ 10]
        for name, run in runs.items()
    }
    assert figures == pytest.approx({"bm25": 0.369, "static": 0.336, "rrf": 0.389}, abs=0.01)
    assert figures["rrf"] > figures["bm25"] > figures["static"]
