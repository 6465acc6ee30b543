"""Evidence in place of documents: what is shown, what is left out, exact match, and how many words are saved."""

import json

import pytest

from benchmark.answers import results
from corpus.models import Pair, Target
from tests.benchmark.answers import scene
from tests.benchmark.answers.scene import RIGHT, answered, rows
from tests.benchmark_scene import by_id
from tests.engine_parts import make_judge
from tests.rankings import make_run, start_run, work_on

pytestmark = pytest.mark.django_db(transaction=True)
EXACT = {"contains": "Answer this query", "text": '{"Answer": "A secret LIFT."}'}


def write_evidence(collection, query, document, text, good=True):
    queries, documents = by_id(collection)
    pair, _new = Pair.objects.get_or_create(
        collection=collection, query=queries[query], document=documents[document], defaults={"is_candidate": False}
    )
    Target.objects.create(
        pair=pair, version=1, kind="judge", writer="prism", contribution="It says how.", evidence=text, good=good
    )


@pytest.fixture
def wings(settings, tmp_path, model_server):
    settings.VAR, settings.RETRY_SECONDS = tmp_path, 0.01
    collection = scene.wings_collection()
    make_run(collection, "three", {query: ["d1", "d2", "d3"] for query in scene.QUERIES})
    scene.models(model_server, "writer", "grader")
    model_server.script(writer=[EXACT], grader=[RIGHT])
    # Words of the documents: d1 8, d2 8, d3 5.
    write_evidence(collection, "q1", "d1", "Slipstream changes lift.")
    write_evidence(collection, "q1", "d3", "Heat flows.")
    write_evidence(collection, "q1", "d2", "Not good enough to show.", good=False)
    write_evidence(collection, "q2", "d3", "Heat through a plate.")
    return collection


def test_evidence_is_shown_in_the_runs_order_and_documents_without_any_are_left_out(wings, model_server):
    evaluation = answered(wings, systems=["three"], k=3, contexts="evidence")
    asked = [scene.fenced(one) for one in model_server.requests() if "Answer this query" in one["user"]]
    assert {one["query"]: one["documents"] for one in asked} == {
        "wing lift": ["Slipstream changes lift.", "Heat flows."],
        "heated plate": ["Heat through a plate."],
    }
    found = rows(evaluation)
    assert [found[query, "three", "writer"].without_evidence for query in ("q1", "q2")] == [1, 2]
    names = {one.pk: one.external_id for one in wings.document_set.all()}
    assert [names[key] for key in found["q1", "three", "writer"].documents] == ["d1", "d3"]


def test_exact_match_and_words_saved_by_hand(wings):
    evaluation = answered(wings, systems=["three"], k=3, contexts="evidence")
    found = rows(evaluation)
    words = {query: (row.document_length, row.context_length) for (query, *_), row in found.items()}
    assert words == {"q1": (8 + 5, 3 + 2), "q2": (5, 4)}
    (cell,) = results.load_result(evaluation, results.choose_versions(wings))["cells"]
    assert (cell["document_length"], cell["context_length"]) == (18, 9)
    assert cell["saved"] == 0.5 and cell["without_evidence"] == 3
    assert cell["exact_match"] == 0.5, "the answer is q1's to the letter, and not q2's"
    whole = answered(wings, systems=["three"], k=3)
    (cell,) = results.load_result(whole, results.choose_versions(wings))["cells"]
    assert (cell["saved"], cell["without_evidence"]) == (0.0, 0), "documents save nothing"


def test_a_runs_own_reranker_comes_before_what_was_written_for_the_collection(wings, model_server):
    told = [
        {"index": 1, "relevance_score": 0.9, "evidence": "Lift grows."},
        {"index": 0, "relevance_score": 0.8, "evidence": "Slipstream."},
        {"index": 2, "relevance_score": 0.1, "evidence": ""},
    ]
    make_judge(model_server, "prism", provider="rerank-endpoint", parameters={"evidence": True})
    model_server.script(prism=[{"body": json.dumps({"results": told})}], writer=[EXACT], grader=[RIGHT])
    work_on(start_run(wings, "rerank", "ours", run="three", judge="prism", top=3, depth=3))
    assert {one["body"]["return_evidence"] for one in model_server.requests()} == {True}

    answered(wings, systems=["three", "ours"], k=3, contexts="evidence")
    shown = {tuple(scene.fenced(one)["documents"]) for one in model_server.requests() if "Answer this" in one["user"]}
    assert shown == {
        ("Lift grows.", "Slipstream."),
        ("Slipstream changes lift.", "Heat flows."),
        ("Heat through a plate.",),
    }
