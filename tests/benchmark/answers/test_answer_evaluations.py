"""Answers against a scripted server: what is asked and kept, evidence, both versions of the qrels, and `rag`."""

import json
import zlib

import pytest

from benchmark.answers import evaluations, results
from benchmark.answers.contexts import load_contexts
from benchmark.answers.listing import list_contexts
from benchmark.answers.results import choose_versions
from benchmark.models import AnswerEvaluation, GeneratedAnswer
from benchmark.suites.groups import make_suite
from corpus.errors import BadInput
from corpus.models import Pair, Target
from jobs.models import JobState
from judges.models.retrieval import RetrievalCall
from judges.prompts.conversations import NO_INFORMATION
from tests.benchmark.answers import scene
from tests.benchmark.answers.scene import ANSWER, RIGHT, WRONG, answered, begin, rows, work
from tests.benchmark_scene import by_id
from tests.called import call
from tests.engine_parts import make_judge
from tests.factories import make_document, make_query
from tests.rankings import make_run, start_run, work_on

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def wings(settings, tmp_path, model_server):
    settings.VAR, settings.RETRY_SECONDS = tmp_path, 0.01
    return scene.prepare(model_server)


def generation_prompts(model_server):
    return [one for one in model_server.requests() if "Answer this query" in one["user"]]


def result_of(evaluation):
    return results.load_result(evaluation, results.choose_versions(evaluation.collection))


def cell(found, system, generator="writer"):
    return next(one for one in found["cells"] if (one["system"], one["generator"]) == (system, generator))


def test_contexts_are_the_first_k_of_the_run_in_order_and_the_answers_are_in_no_prompt(wings, model_server):
    many = [make_document(wings, f"Passage {n} of many.", external_id=f"m{n:02}").external_id for n in range(14)]
    make_run(wings, "long", {"q1": many, "q2": many[:3], "q3": many})
    evaluation = answered(wings, systems=["long"], k=10)
    assert (evaluation.state, evaluation.done, evaluation.total) == (JobState.READY, 2, 2)
    shown = {one["query"]: one["documents"] for one in map(scene.fenced, generation_prompts(model_server))}
    assert shown["wing lift"] == [f"Passage {n} of many." for n in range(10)]
    assert shown["heated plate"] == [f"Passage {n} of many." for n in range(3)]
    bodies = RetrievalCall.objects.filter(campaign=evaluation.campaign, role="answer").values_list("messages", "raw")
    assert len(bodies) == 2
    assert not any("secret" in zlib.decompress(bytes(part)).decode() for pair in bodies for part in pair)
    assert not any("secret" in json.dumps(one["body"]) for one in generation_prompts(model_server))
    assert "airfoil" not in shown and result_of(evaluation)["no_answers"] == 1


def test_a_long_document_is_cut_at_the_stated_bound_and_the_model_is_told(wings, model_server):
    make_document(wings, "word " * 2_000, title="Long", external_id="long")
    make_run(wings, "cut", {query: ["long", "d1"] for query in scene.QUERIES})
    evaluation = answered(wings, systems=["cut"])
    told = scene.fenced(generation_prompts(model_server)[0])
    assert [len(one) for one in told["documents"]] == [4_000, len(scene.TEXTS["d1"])]
    assert told["documents"][0].startswith("Long\nword")
    assert told["documents, note"] == "cut: the first 4,000 characters of each"
    assert evaluation.options["characters"] == 4_000
    first, second = list_contexts(rows(evaluation)["q1", "cut", "writer"], choose_versions(wings))
    assert (len(first.text), first.is_cut) == (4_000 - len("Long\n"), True)
    assert (second.text, second.is_cut) == (scene.TEXTS["d1"], False)
    make_document(wings, "x" * 3_998, title="Long", external_id="titled")
    make_run(wings, "title", {query: ["titled", "d1"] for query in scene.QUERIES})
    shown = list_contexts(rows(answered(wings, systems=["title"]))["q1", "title", "writer"], choose_versions(wings))
    assert (shown[0].text, shown[0].is_cut) == ("x" * 3_995, True), "it is cut for its title alone"


def test_that_nothing_was_found_is_judged_like_any_text(wings, model_server):
    model_server.script(writer=[{"text": json.dumps({"Answer": NO_INFORMATION})}], grader=[WRONG])
    found = rows(answered(wings, systems=["bm25"])).values()
    assert {(one.answer, one.correct, one.problem) for one in found} == {(NO_INFORMATION, False, "")}
    asked = [one["user"] for one in model_server.requests() if "Is this answer" in one["user"]]
    assert len(asked) == 2 and all(NO_INFORMATION in one for one in asked)
    make_run(wings, "short", {"q1": ["d1", "d2"]})
    evaluation = answered(wings, systems=["short"])
    assert rows(evaluation)["q2", "short", "writer"].documents == [], "it is asked without documents"
    runs, queries = evaluations.runs_in(evaluation), evaluations.answered_queries(wings)
    assert load_contexts(runs, queries, 2, "document")[runs[0].pk, queries[1].pk].texts == ()


@pytest.mark.parametrize("bad", ['{"Answer": "  "}', "no JSON"])
def test_an_empty_or_malformed_answer_is_repaired_once_then_wrong_and_counted(wings, model_server, bad):
    model_server.script(writer=[{"contains": "heated plate", "text": bad}, ANSWER], grader=[RIGHT])
    evaluation = answered(wings, systems=["bm25"])
    found = rows(evaluation)
    failed = found["q2", "bm25", "writer"]
    assert (failed.correct, failed.answer) == (False, "") and failed.problem.startswith("unparsed: ")
    assert found["q1", "bm25", "writer"].correct is True
    assert RetrievalCall.objects.filter(campaign=evaluation.campaign, role="answer", outcome="unparsed").count() == 2
    assert cell(result_of(evaluation), "bm25")["malformed"] == 1


@pytest.mark.parametrize("said", ['"true"', "1"])
def test_a_verdict_is_a_json_boolean_and_nothing_else(wings, model_server, said):
    bad = {"contains": "heated plate", "text": f'{{"correct": {said}}}'}
    model_server.script(writer=[ANSWER], grader=[bad, RIGHT])
    evaluation = answered(wings, systems=["bm25"])
    silent = rows(evaluation)["q2", "bm25", "writer"]
    assert silent.correct is None and silent.problem.startswith("unparsed: ")
    told = result_of(evaluation)
    assert (told["queries"], told["no_verdict"], told["complete"]) == (1, 1, True)
    assert cell(told, "bm25")["no_verdict"] == 1, "named, and neither right nor wrong"


def test_both_versions_use_the_same_stored_answers_and_only_retrieval_changes(wings, model_server):
    model_server.script(
        writer=[ANSWER], grader=[{**RIGHT, "contains": "wing lift"}, {**WRONG, "contains": "heated plate"}]
    )
    evaluation = answered(wings)
    asked = len(model_server.requests())
    alone = result_of(evaluation)
    # Retrieval by the original: bm25 hits q1 alone; dense hits nothing. Answers: q1 right, q2 wrong, for both.
    assert cell(alone, "bm25")["align"]["before"] == 1.0 and cell(alone, "bm25")["align"]["after"] is None
    assert cell(alone, "dense")["align"]["before"] == 0.5

    before = {key: (one.answer, one.correct) for key, one in rows(evaluation).items()}
    scene.filled_version(wings, q1="d3", q2="d2")
    found = result_of(evaluation)
    # The filled version knows d3 for q1 (only dense returns it) and d2 for q2 (only bm25's first two have it).
    assert cell(found, "bm25")["align"]["before"] == 1.0 and cell(found, "bm25")["align"]["after"] == 0.5
    assert cell(found, "dense")["align"]["before"] == 0.5 and cell(found, "dense")["align"]["after"] == 1.0
    assert [cell(found, name)["align"]["change"] for name in ("bm25", "dense")] == [-0.5, 0.5]
    assert {key: (one.answer, one.correct) for key, one in rows(evaluation).items()} == before
    assert len(model_server.requests()) == asked, "recomputing asks nobody"
    assert (found["before"], found["after"]) == (1, 2)


def test_two_generators_are_two_columns_with_equal_prompts_and_own_answers(wings, model_server):
    scene.models(model_server, "other")
    model_server.script(writer=[ANSWER], other=[{**ANSWER, "text": '{"Answer": "It heats."}'}], grader=[RIGHT])
    evaluation = answered(wings, systems=["bm25"], generators=["writer", "other"])
    by_model = {}
    for one in generation_prompts(model_server):
        by_model.setdefault(one["model"], set()).add(one["user"])
    assert by_model["writer"] == by_model["other"] and len(by_model["writer"]) == 2
    answers = {(generator, one.answer) for (_query, _run, generator), one in rows(evaluation).items()}
    assert answers == {("writer", "It lifts."), ("other", "It heats.")}
    assert [one["generator"] for one in result_of(evaluation)["means"]] == ["writer", "other"]


def test_a_query_that_came_later_is_asked_about_by_the_same_command(wings, model_server):
    evaluation = answered(wings, systems=["bm25"])
    make_query(wings, "thin layer", external_id="q4", answers=["a secret layer"])
    assert result_of(evaluation)["complete"] is False
    asked = len(generation_prompts(model_server))
    again = work(begin(wings, systems=["bm25"]))
    assert (again.pk, again.state, again.done) == (evaluation.pk, JobState.READY, 3)
    assert len(generation_prompts(model_server)) == asked + 1


def test_a_budget_that_ends_in_the_middle_keeps_what_is_whole_without_a_mean(wings, model_server):
    evaluation = answered(wings, max_calls=5)
    assert evaluation.state == JobState.FAILED and evaluation.error.startswith("Stopped by")
    assert 0 < evaluation.done < evaluation.total == 4
    partial = result_of(evaluation)
    assert partial["complete"] is False and partial["waiting"] >= 1 and partial["means"] == []
    assert len(model_server.requests()) == 5

    done = answered(wings, max_calls=20)
    assert (done.pk, done.state, done.done) == (evaluation.pk, JobState.READY, 4)
    assert len(result_of(done)["means"]) == 1
    prompts = [one["user"] for one in generation_prompts(model_server)]
    assert len(prompts) == len(set(prompts)) == 4, "nothing is paid for twice"


def test_a_model_that_nobody_can_reach_leaves_no_answer_and_is_tried_again(wings, model_server):
    model_server.script(writer=[{"fault": "500"}], grader=[RIGHT])
    evaluation = answered(wings, systems=["bm25"])
    assert evaluation.state == JobState.FAILED and "of 2" in evaluation.error
    assert not GeneratedAnswer.objects.exists(), "no answer is no wrong answer"
    model_server.script(writer=[ANSWER], grader=[RIGHT])
    assert answered(wings, systems=["bm25"]).state == JobState.READY


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"systems": ["none"]}, "Run 'none' does not exist or is not ready"),
        ({"generators": ["nobody"]}, "'nobody' is not a judge that writes text"),
        ({"judge": "unknown"}, "'unknown'"),
        ({"k": 3}, "The run bm25 returns only 2 documents per query."),
        ({"budget": -1.0}, "greater than 0"),
        ({}, "reference answer"),
    ],
)
def test_what_cannot_work_is_refused_and_leaves_nothing(wings, given, problem):
    if not given:
        wings.query_set.update(answers=[])
    with pytest.raises(BadInput, match=problem):
        begin(wings, **given)
    assert not AnswerEvaluation.objects.exists()


WHO = ("--systems", "bm25,dense", "--generator", "writer", "--judge", "grader", "--k", "2")


def rag(name, *given):
    return call("rag", name, *WHO, *given)


def test_a_finished_evaluation_is_printed_with_both_versions(wings):
    answered(wings)
    scene.filled_version(wings, q2="d3")
    assert rag("wings").out.splitlines()[0] == "wings: RAGAlign@2 over 2 queries, qrels 1 and 2"
    told = rag("wings", "--json").json
    assert (told["state"], told["queries"], told["complete"], told["calls"]) == ("ready", 2, True, 6)
    assert (told["moved"], told["no_answers"]) == (1, 1)
    cells = {(one["system"], one["align"]["before"], one["align"]["after"]) for one in told["cells"]}
    assert cells == {("bm25", 0.5, 0.5), ("dense", 0.0, 0.5)}
    named = rag("wings", "--json", "--before", 2, "--after", 1).json
    assert (named["before"], named["after"]) == (2, 1)
    refused = rag("wings", "--before", 9)
    assert refused.code == 2 and "9" in refused.err and "1, 2" in refused.err


def test_a_suite_has_its_members_and_the_unweighted_mean(wings, model_server):
    plates = scene.wings_collection("plates")
    scene.two_runs(plates)
    make_suite(name="main", collections=[wings, plates])
    for one in (wings, plates):
        answered(one)
    told = rag("main", "--json").json
    assert [one["collection"] for one in told["members"]] == ["wings", "plates"]
    means = [(line["system"], line["mean"]["before"]) for line in told["lines"]]
    assert means == [("", 0.25), ("bm25", 0.5), ("dense", 0.0)]


def test_a_suite_shares_its_limits_by_the_number_of_answers(wings):
    plates = scene.wings_collection("plates")
    for n in range(4):
        make_query(plates, f"query {n}", external_id=f"more{n}", answers=["a secret"])
    scene.two_runs(plates)
    make_suite(name="main", collections=[wings, plates])
    rag("main", "--max-calls", 8, "--budget", 4)
    found = AnswerEvaluation.objects.values_list("collection__name", "options__max_calls", "options__budget")
    assert set(found) == {("wings", 2, 1.0), ("plates", 6, 3.0)}


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
def evidenced(settings, tmp_path, model_server):
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


def test_evidence_is_shown_in_the_runs_order_and_documents_without_any_are_left_out(evidenced, model_server):
    evaluation = answered(evidenced, systems=["three"], k=3, contexts="evidence")
    asked = [scene.fenced(one) for one in model_server.requests() if "Answer this query" in one["user"]]
    assert {one["query"]: one["documents"] for one in asked} == {
        "wing lift": ["Slipstream changes lift.", "Heat flows."],
        "heated plate": ["Heat through a plate."],
    }
    found = rows(evaluation)
    assert [found[query, "three", "writer"].without_evidence for query in ("q1", "q2")] == [1, 2]
    names = {one.pk: one.external_id for one in evidenced.document_set.all()}
    assert [names[key] for key in found["q1", "three", "writer"].documents] == ["d1", "d3"]


def test_exact_match_and_words_saved_by_hand(evidenced):
    evaluation = answered(evidenced, systems=["three"], k=3, contexts="evidence")
    found = rows(evaluation)
    words = {query: (row.document_length, row.context_length) for (query, *_), row in found.items()}
    assert words == {"q1": (8 + 5, 3 + 2), "q2": (5, 4)}
    (cell,) = results.load_result(evaluation, results.choose_versions(evidenced))["cells"]
    assert (cell["document_length"], cell["context_length"]) == (18, 9)
    assert cell["saved"] == 0.5 and cell["without_evidence"] == 3
    assert cell["exact_match"] == 0.5, "the answer is q1's to the letter, and not q2's"
    whole = answered(evidenced, systems=["three"], k=3)
    (cell,) = results.load_result(whole, results.choose_versions(evidenced))["cells"]
    assert (cell["saved"], cell["without_evidence"]) == (0.0, 0), "documents save nothing"


def test_a_runs_own_reranker_comes_before_what_was_written_for_the_collection(evidenced, model_server):
    told = [
        {"index": 1, "relevance_score": 0.9, "evidence": "Lift grows."},
        {"index": 0, "relevance_score": 0.8, "evidence": "Slipstream."},
        {"index": 2, "relevance_score": 0.1, "evidence": ""},
    ]
    make_judge(model_server, "prism", provider="rerank-endpoint", parameters={"evidence": True})
    model_server.script(prism=[{"body": json.dumps({"results": told})}], writer=[EXACT], grader=[RIGHT])
    work_on(start_run(evidenced, "rerank", "ours", run="three", judge="prism", top=3, depth=3))
    assert {one["body"]["return_evidence"] for one in model_server.requests()} == {True}

    answered(evidenced, systems=["three", "ours"], k=3, contexts="evidence")
    shown = {tuple(scene.fenced(one)["documents"]) for one in model_server.requests() if "Answer this" in one["user"]}
    assert shown == {
        ("Lift grows.", "Slipstream."),
        ("Slipstream changes lift.", "Heat flows."),
        ("Heat through a plate.",),
    }
