"""`agents` and `references`: the table with its means, files, suites, what is refused, and the estimate."""

import csv
import json
from collections import Counter
from io import StringIO

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from benchmark.agents import demo
from benchmark.agents.board import build_board
from benchmark.agents.exchange import describe_traces
from benchmark.models import AgentJob, AgentSample, AnswerAssessment, ReferenceAnswer, Suite, SuiteMember, Trace
from corpus import bundled
from corpus.models import Collection
from corpus.models.aspects import Aspect
from judges.models.retrieval import RetrievalCall
from tests.benchmark.agents.scripted import agent, answer, finish, says, search, wings, with_aspects
from tests.called import call
from tests.engine_parts import make_judge

pytestmark = pytest.mark.django_db(transaction=True)
GRADES = {"aspect_scores": [{"id": "a1", "score": 1}, {"id": "a2", "score": 0}], "justification": "So."}


@pytest.fixture
def scene(settings, tmp_path, model_server):
    """Two agents, of which the second searches twice before it answers; a judge that likes the second one more."""
    settings.VAR, settings.RETRY_SECONDS = tmp_path, 0.01
    for name in ("reader", "writer", "grader"):
        make_judge(model_server, name)
    model_server.script(
        reader=agent(search("alpha"), answer("First [alpha-1].")),
        writer=agent(search("alpha"), search("beta"), answer("Second [beta-1].")),
        grader=[says({**GRADES, "overall_quality": 3}, contains="First"), says({**GRADES, "overall_quality": 5})],
    )
    return with_aspects(wings(2))


def finish_all():
    for job in AgentJob.objects.order_by("pk"):
        assert finish(job).state == "ready", job.error


SEARCH = ("agents", "wings", "--retrievers", "bm25", "--agents", "reader,writer", "--protocol", "adaptive")


def test_the_table_has_each_agent_and_the_mean_of_both(scene, tmp_path):
    said = call(*SEARCH, "--json")
    assert said.code == 0 and said.json["state"] == "waiting"
    assert said.json["retrievers"][0]["mean"]["aer"] is None
    finish_all()
    assert call("agents", "wings", "--judge", "grader", "--json").code == 0
    finish_all()
    files = {"out": tmp_path / "out", "csv": tmp_path / "t.csv", "latex": tmp_path / "t.tex"}
    said = call("agents", "wings", *(part for name, path in files.items() for part in (f"--{name}", path)), "--json")
    (line,) = said.json["retrievers"]
    one, two = line["agents"]
    assert [one["values"]["searches"], two["values"]["searches"]] == [1, 2]
    assert [one["values"]["aer"], two["values"]["aer"]] == pytest.approx([3, 5 * 0.9512294])
    assert line["mean"]["aer"] == pytest.approx((3 + 5 * 0.9512294) / 2)
    assert line["mean"]["completeness"] == 4  # a1 of weight 3, a2 of weight 1: 4 x .75 + 1
    assert (one["graded"], one["not_graded"], one["queries"], one["usd"] > 0) == (2, 0, 2, True)
    rows = list(csv.reader(StringIO(files["csv"].read_text())))
    assert [row[:2] for row in rows[1:]] == [["bm25", "mean"], ["bm25", "reader"], ["bm25", "writer"]]
    assert "\\toprule" in files["latex"].read_text()
    traces = [json.loads(row) for row in (files["out"] / "traces.jsonl").read_text().splitlines()]
    assert [(row["query_id"], row["agent"], row["round"], row["stop"]) for row in traces[:3]] == [
        ("q0", "reader", 1, "answered"),
        ("q0", "writer", 1, None),
        ("q0", "writer", 2, "answered"),
    ]
    assert json.loads((files["out"] / "sample.json").read_text())["per_domain"] == 25
    assert len((files["out"] / "judgments.jsonl").read_text().splitlines()) == 4


def test_tokens_of_a_trace_are_added_up_without_reading_its_conversations(scene):
    call(*SEARCH)
    finish_all()
    job = AgentJob.objects.get()
    with CaptureQueriesContext(connection) as asked:
        rows = list(describe_traces(job))
    names, sums = dict(scene.query_set.values_list("pk", "external_id")), Counter()
    for one in RetrievalCall.objects.filter(campaign=job.campaign, role="search"):
        sums[names[one.query], one.topic.split("/")[1]] += one.tokens_in + one.tokens_out
    assert len(sums) == 4 and all(sums.values())
    assert {(row["query_id"], row["agent"]): row["tokens"] for row in rows} == sums
    assert not any('"raw"' in one["sql"] for one in asked.captured_queries)


def test_nothing_is_a_mean_of_what_is_not_whole(scene):
    call(*SEARCH)
    finish_all()
    call("agents", "wings", "--judge", "grader")
    finish_all()
    graded = AgentJob.objects.get(kind="grade")
    AnswerAssessment.objects.filter(job=graded, trace__agent="writer").first().delete()
    (line,) = build_board(graded.graded).lines
    assert [cell.values["aer"] for cell in line["cells"]] == [3, None] and line["mean"]["aer"] is None
    Trace.objects.filter(agent="reader").first().delete()
    (line,) = build_board(graded.graded).lines
    assert [cell.is_whole for cell in line["cells"]] == [False, True]
    assert line["cells"][0].values["ndcg"] is None and line["cells"][1].values["ndcg"] is not None


def test_a_suite_has_the_unweighted_mean_of_its_members(scene):
    other = with_aspects(wings(1, "plates"))
    suite = Suite.objects.create(name="both")
    for place, one in enumerate((scene, other), 1):
        SuiteMember.objects.create(suite=suite, collection=one, place=place)
    said = call("agents", "both", *SEARCH[2:], "--json")
    assert said.code == 0 and said.json["mean"]["bm25"]["mean"]["aer"] is None
    finish_all()
    assert call("agents", "both", "--judge", "grader").code == 0
    finish_all()
    said = call("agents", "both", "--json").json
    members = [one["retrievers"][0]["agents"][1]["values"]["ndcg"] for one in said["members"]]
    assert said["mean"]["bm25"]["agents"]["writer"]["ndcg"] == pytest.approx(sum(members) / 2)
    assert said["mean"]["bm25"]["mean"]["aer"] == pytest.approx((3 + 5 * 0.9512294) / 2)


def test_what_cannot_be_done_is_said_in_one_line_and_an_estimate_starts_nothing(scene):
    for args, problem in (
        (("nowhere",), "There is no suite and no collection 'nowhere'"),
        (("wings",), "Agents have not searched wings yet"),
        (("wings", "--agents", "reader"), "--retrievers and --agents go together"),
        (("wings", "--protocol", "neither"), "--protocol: "),
        (("wings", "--halves", "neither"), "--halves: "),
        (("wings", "--retrievers", "dense", "--agents", "reader"), "no retriever dense that can search for any text"),
    ):
        said = call("agents", *args)
        assert (said.code, said.out) == (2, "") and problem in said.err, (args, said.err)
    assert not AgentJob.objects.exists() and not AgentSample.objects.exists()
    said = call(*SEARCH, "--estimate", "--json")
    assert "about 28 calls" in said.json["estimate"] and "6 times a query" in said.json["estimate"]
    assert not AgentJob.objects.exists()
    said = call("references", "wings", "--judge", "grader", "--estimate")
    assert said.code == 0 and "about 2 calls" in said.out


def test_references_are_written_and_saved(scene, model_server, tmp_path):
    model_server.script(grader=says({"answer": "So [alpha-1], and [beta-1]."}))
    assert call("references", "wings", "--judge", "grader", "--json").json["state"] == "waiting"
    finish_all()
    said = call("references", "wings", "--judge", "grader", "--out", tmp_path / "r.jsonl", "--json")
    assert (said.json["written"], said.json["problems"]) == (2, {})
    row = json.loads((tmp_path / "r.jsonl").read_text().splitlines()[0])
    assert row["citations"] == ["alpha-1", "beta-1"] and len(row["prompt_sha256"]) == 64


def test_the_demo_has_graded_answers_of_an_offline_agent(settings, tmp_path):
    settings.VAR = tmp_path
    built = bundled.build(tmp_path)
    files = [part for name in ("corpus", "queries", "pairs") for part in (f"--{name}", tmp_path / f"{name}.jsonl")]
    assert call("import_collection", "reference", *files, "--grades", 1).code == 0
    collection = Collection.objects.get(name="reference")
    started = demo.start_searches(collection, tmp_path / "aspects.jsonl")
    assert not demo.are_over(started)
    assert [finish(one).state for one in started] == ["ready"] * 3
    assert demo.are_over(started)
    demo.start_gradings(collection)
    for job in AgentJob.objects.filter(kind="grade"):
        assert finish(job).state == "ready", job.error
    assert Aspect.objects.count() == built["aspects"] == 8
    assert ReferenceAnswer.objects.filter(problem="").count() == 4
    for job in AgentJob.objects.filter(kind="search"):
        (cell,) = build_board(job).lines[0]["cells"]
        assert cell.agent == "offline-rewriter" and None not in cell.values.values()
    assert [one.pk for one in demo.start_searches(collection, tmp_path / "aspects.jsonl")] == [
        one.pk for one in started
    ]
