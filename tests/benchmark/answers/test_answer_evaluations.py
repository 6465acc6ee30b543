"""Answers against a scripted server: what is asked, what is kept, and what both versions of the qrels make of it."""

import json
import zlib

import pytest

from benchmark.answers import evaluations, results
from benchmark.answers.contexts import load_contexts
from benchmark.answers.evaluations import ANSWERS
from benchmark.answers.listing import list_contexts
from benchmark.answers.results import choose_versions
from benchmark.models import AnswerEvaluation, GeneratedAnswer
from corpus.errors import BadInput
from jobs.models import JobState
from judges.models.retrieval import RetrievalCall
from judges.prompts.conversations import NO_INFORMATION
from tests.benchmark.answers import scene
from tests.benchmark.answers.scene import ANSWER, RIGHT, WRONG, answered, begin, rows, work
from tests.factories import make_document, make_query
from tests.rankings import make_run

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


def test_a_worker_that_ends_gives_it_back_and_a_cancelled_one_goes_on(wings):
    evaluation = begin(wings)
    assert work(evaluation, stopped=lambda: True).state == JobState.WAITING
    assert ANSWERS.cancel(evaluation)
    evaluation.refresh_from_db()
    assert evaluation.state == JobState.CANCELLED
    assert answered(wings).state == JobState.READY


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
