"""The command `rag`: estimate, suite, what it refuses, and a worker that is killed in the middle."""

import json
import os
import signal
import subprocess
import time
from io import StringIO

import pytest
from django.core.management import call_command

from benchmark.answers import results
from benchmark.models import AnswerEvaluation, GeneratedAnswer
from benchmark.suites.groups import make_suite
from config.env import ROOT
from jobs.processes import spawn_child
from judges.engine import worker_pool
from judges.models.retrieval import RetrievalCall
from tests.benchmark.answers import scene
from tests.benchmark.answers.scene import ANSWER, RIGHT, answered, begin
from tests.engine_parts import FAST
from tests.factories import make_collection, make_document, make_query
from tests.instances import until
from tests.rankings import make_run
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


def test_an_estimate_creates_nothing(wings, model_server):
    out, _ = rag("wings", *WHO, "--estimate")
    assert out.startswith("about 8 calls (at most 8 without retries), about $")
    assert not AnswerEvaluation.objects.exists() and model_server.requests() == []


def test_a_finished_evaluation_is_printed_with_both_versions(wings):
    answered(wings)
    scene.filled_version(wings, q2="d3")
    out, _ = rag("wings", *WHO)
    assert out.splitlines()[0] == "wings: RAGAlign@2 over 2 queries, qrels 1 and 2"
    assert "1 of 2 systems have another rank by Hit@2" in out
    assert "left out: 1 queries without reference answers" in out
    told = json.loads(rag("wings", *WHO, "--json")[0])
    assert (told["state"], told["queries"], told["complete"], told["calls"]) == ("ready", 2, True, 6)
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
    assert err.strip() == "wings has no qrels version 9; there are: 1, 2"


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


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (("nowhere", *WHO), 'There is no collection or suite "nowhere"; there are: wings'),
        (("wings", *WHO, "--systems", "none"), "Run 'none' does not exist or is not ready"),
        (("wings", *WHO, "--judge", "nobody"), "'nobody' is not a judge that writes text"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(wings, given, problem):
    _, err = rag(*given, code=2)
    assert problem in err and len(err.strip().splitlines()) == 1
    assert not AnswerEvaluation.objects.exists()


@pytest.mark.slow
def test_a_killed_worker_pays_for_nothing_twice_and_the_table_is_the_same(model_server, manage, instance):
    things = make_collection("things")
    for n in range(6):
        make_document(things, f"Mapping {n} maps hashable values.", external_id=f"d{n}")
    for n in range(24):
        make_query(things, f"What does mapping number {n} map?", external_id=f"q{n:02}", answers=["values"])
    scene.grade(things, q01="d1", q02="d2", q03="d5")
    make_run(things, "bm25", {f"q{n:02}": ["d1", "d2"] for n in range(24)})
    make_run(things, "dense", {f"q{n:02}": ["d5", f"d{n % 5}"] for n in range(24)})
    scene.models(model_server, "writer", "grader")
    slow = [{**ANSWER, "latency": 0.7, "contains": f"number {n} map"} for n in (1, 2, 3)]
    wrong = {"contains": "number 3 map", "text": '{"correct": false}'}
    model_server.script(writer=[*slow, {**ANSWER, "latency": 0.5}], grader=[wrong, {**RIGHT, "latency": 0.5}])

    environment = {**instance, **FAST}
    own = spawn_child(worker_pool.worker_command(1, "killed"), environment, cwd=ROOT, stderr=subprocess.DEVNULL)
    row = begin(things)
    until(lambda: len(model_server.requests()) >= 20)
    killed = time.time()
    os.killpg(own.pid, signal.SIGKILL)
    own.wait()
    time.sleep(1.2)
    dead = time.time()
    assert GeneratedAnswer.objects.count() < 48

    done = manage("rag", "things", *WHO, "--wait", "--yes", "--json", environment=FAST)
    assert (done.json["state"], done.json["done"]) == ("ready", 48)
    repeated, flying = repeated_beyond_flight(model_server.requests(), killed, dead)
    assert repeated == 0 and flying
    row.refresh_from_db()
    calls = RetrievalCall.objects.filter(campaign=row.campaign, outcome="labelled")
    assert calls.values("query", "topic", "role").distinct().count() == 96

    # The same answers without a kill come to the same table.
    GeneratedAnswer.objects.filter(evaluation=row).delete()
    AnswerEvaluation.objects.filter(pk=row.pk).delete()
    asked = len(model_server.requests())
    again = manage("rag", "things", *WHO, "--wait", "--yes", "--json", environment=FAST)
    assert again.json["cells"] == done.json["cells"] and again.json["means"] == done.json["means"]
    assert len(model_server.requests()) == asked, "equal questions were answered before"
    assert results.load_result(AnswerEvaluation.objects.get(), results.choose_versions(things))["complete"]
