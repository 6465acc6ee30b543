"""The command `rag`: both versions, and suites."""

import pytest

from benchmark.models import AnswerEvaluation
from benchmark.suites.groups import make_suite
from tests.benchmark.answers import scene
from tests.benchmark.answers.scene import answered
from tests.called import call
from tests.factories import make_query

pytestmark = pytest.mark.django_db(transaction=True)
WHO = ("--systems", "bm25,dense", "--generator", "writer", "--judge", "grader", "--k", "2")


@pytest.fixture
def wings(settings, tmp_path, model_server):
    settings.VAR, settings.RETRY_SECONDS = tmp_path, 0.01
    return scene.prepare(model_server)


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
