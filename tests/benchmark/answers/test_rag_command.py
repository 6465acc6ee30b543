"""The command `rag`: both versions, suites, and a worker that is killed in the middle."""

import json
import os
import signal
import subprocess
import time
from io import StringIO

import pytest
from django.core.management import call_command

from benchmark.models import AnswerEvaluation, GeneratedAnswer
from benchmark.suites.groups import make_suite
from config.env import ROOT
from jobs.processes import spawn_child
from judges.models.retrieval import RetrievalCall
from judges.workers import worker_pool
from tests.benchmark.answers import scene
from tests.benchmark.answers.scene import ANSWER, RIGHT, answered, begin
from tests.engine_parts import FAST
from tests.factories import make_query
from tests.instances import until
from tests.rankings import make_run, make_texts
from tests.repeated import repeated_beyond_flight

pytestmark = pytest.mark.django_db(transaction=True)
WHO = ("--systems", "bm25,dense", "--generator", "writer", "--judge", "grader", "--k", "2")


@pytest.fixture
def wings(settings, tmp_path, model_server):
    settings.VAR, settings.RETRY_SECONDS = tmp_path, 0.01
    collection = scene.wings_collection()
    scene.two_runs(collection)
    scene.models(model_server, "writer", "grader")
    model_server.script(writer=[ANSWER], grader=[RIGHT])
    return collection


def rag(*given, code=0):
    """Standard output and error of the command."""
    out, err = StringIO(), StringIO()
    if code:
        with pytest.raises(SystemExit) as ended:
            call_command("rag", *given, stdout=out, stderr=err)
        assert ended.value.code == code
    else:
        call_command("rag", *given, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def test_a_finished_evaluation_is_printed_with_both_versions(wings):
    answered(wings)
    scene.filled_version(wings, q2="d3")
    out, _ = rag("wings", *WHO)
    assert out.splitlines()[0] == "wings: RAGAlign@2 over 2 queries, qrels 1 and 2"
    told = json.loads(rag("wings", *WHO, "--json")[0])
    assert (told["state"], told["queries"], told["complete"], told["calls"]) == ("ready", 2, True, 6)
    assert (told["moved"], told["no_answers"]) == (1, 1)
    assert {(one["system"], one["align"]["before"], one["align"]["after"]) for one in told["cells"]} == {
        ("bm25", 0.5, 0.5),
        ("dense", 0.0, 0.5),
    }


def test_versions_may_be_named(wings):
    answered(wings)
    scene.filled_version(wings, q2="d3")
    told = json.loads(rag("wings", *WHO, "--json", "--before", "2", "--after", "1")[0])
    assert (told["before"], told["after"]) == (2, 1)
    _, err = rag("wings", *WHO, "--before", "9", code=2)
    assert "9" in err and "1, 2" in err


def test_a_suite_has_its_members_and_the_unweighted_mean(wings, model_server):
    plates = scene.wings_collection("plates")
    scene.two_runs(plates)
    make_suite(name="main", collections=[wings, plates])
    for one in (wings, plates):
        answered(one)
    told = json.loads(rag("main", *WHO, "--json")[0])
    assert [one["collection"] for one in told["members"]] == ["wings", "plates"]
    assert [(line["system"], line["mean"]["before"]) for line in told["lines"]] == [
        ("", 0.25),
        ("bm25", 0.5),
        ("dense", 0.0),
    ]


def test_a_suite_shares_its_limits_by_the_number_of_answers(wings):
    plates = scene.wings_collection("plates")
    for n in range(4):
        make_query(plates, f"query {n}", external_id=f"more{n}", answers=["a secret"])
    scene.two_runs(plates)
    make_suite(name="main", collections=[wings, plates])
    rag("main", *WHO, "--max-calls", "8", "--budget", "4")
    limits = {one.collection.name: (one.options["max_calls"], one.options["budget"]) for one in
              AnswerEvaluation.objects.select_related("collection")}  # fmt: skip
    assert limits == {"wings": (2, 1.0), "plates": (6, 3.0)}


@pytest.mark.slow
def test_a_killed_worker_pays_for_nothing_twice(model_server, manage, instance):
    documents = {f"d{n}": f"Mapping {n} maps hashable values." for n in range(6)}
    queries = {f"q{n:02}": f"What does mapping number {n} map?" for n in range(24)}
    things = make_texts("things", documents, queries)
    things.query_set.update(answers=["values"])
    make_run(things, "bm25", {query: ["d1", "d2"] for query in queries})
    make_run(things, "dense", {query: ["d5", f"d{n % 5}"] for n, query in enumerate(queries)})
    scene.grade(things, q01="d1", q02="d2", q03="d5")
    scene.models(model_server, "writer", "grader")
    wrong = {"contains": "number 3 map", "text": '{"correct": false}', "latency": 0.5}
    model_server.script(writer=[{**ANSWER, "latency": 0.5}], grader=[wrong, {**RIGHT, "latency": 0.5}])

    command = worker_pool.worker_command(1, "killed")
    own = spawn_child(command, {**instance, **FAST}, cwd=ROOT, stderr=subprocess.DEVNULL)
    row = begin(things)
    until(lambda: len(model_server.requests()) >= 20)
    killed = time.time()
    os.killpg(own.pid, signal.SIGKILL)
    own.wait()
    time.sleep(1)
    dead = time.time()
    assert GeneratedAnswer.objects.count() < 48
    done = manage("rag", "things", *WHO, "--wait", "--yes", "--json", environment=FAST)
    assert (done.json["state"], done.json["done"]) == ("ready", 48)
    repeated, flying = repeated_beyond_flight(model_server.requests(), killed, dead)
    assert repeated == 0 and flying
    row.refresh_from_db()
    calls = RetrievalCall.objects.filter(campaign=row.campaign, outcome="labelled")
    assert calls.values("query", "topic", "role").distinct().count() == 96
    wrong_of = GeneratedAnswer.objects.filter(evaluation=row, correct=False)
    assert sorted(wrong_of.values_list("query__external_id", flat=True)) == ["q03", "q03"], "as without a kill"
