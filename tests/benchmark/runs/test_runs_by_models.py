"""Runs that models make: rewriting, reasoning, vectors and rerankers against a scripted server (issue 6, check 8)."""

import json
import os
import signal
import subprocess
import time

import pytest

from actions.services import Actor
from annotation.models import Role
from benchmark.management.commands.retrieve import read_instructions
from benchmark.models import Ranking, Run
from benchmark.runs import rankings, services
from benchmark.runs.builders import RUNS
from benchmark.runs.costs import run_cost
from benchmark.runs.options import RunOptions
from config.env import ROOT
from corpus.errors import BadInput
from corpus.search.bm25 import index_for
from jobs.processes import spawn_child
from judges.costs.collection_budgets import collection_budget
from judges.costs.ledger import ledger_rows
from judges.models import Campaign
from judges.models.retrieval import RetrievalCall
from judges.retrieval.model_requests import judges_for
from judges.workers import worker_pool
from tests.engine_parts import FAST, held, make_judge, spent_by
from tests.factories import client_of, make_document, make_member, make_query
from tests.instances import until
from tests.rankings import make_texts, start_run, work_on
from tests.reading import page_text
from tests.repeated import repeated_beyond_flight

pytestmark = pytest.mark.django_db(transaction=True)
TEXTS = {
    "d1": "A wing in a slipstream changes its lift.",
    "d2": "Lift of a wing grows with the angle.",
    "d3": "Heat flows through a plate.",
    "d4": "The boundary layer of a plate is thin.",
}
QUERIES = {"q1": "wing lift", "q2": "heated plate", "q3": "airfoil"}


@pytest.fixture
def wings(settings, tmp_path):
    settings.VAR = tmp_path
    settings.RETRY_SECONDS = 0.01
    told = "Relevant is what explains a force or a flow."
    collection = make_texts("wings", TEXTS, QUERIES, instruction=told)
    collection.query_set.update(answers=["a secret answer"])
    return collection


def start(collection, kind, name="run", depth=3, **recipe):
    return start_run(collection, kind, name, depth=depth, **recipe)


def texts(run):
    return dict(Ranking.objects.filter(run=run).values_list("query__external_id", "text"))


def documents(run):
    found = rankings.as_run(run)
    return {query: list(scores) for query, scores in found.items()}


def fenced(request):
    """What the prompt shows as data."""
    user = request["user"]
    return json.loads(user[user.index("{") : user.index("}") + 1])


def test_hyde_searches_for_the_passage_and_records_prompt_call_and_cost(wings, model_server):
    make_judge(model_server, "writer")
    model_server.script(writer={"written": "boundary layer"})
    run = work_on(start(wings, "rewrite", method="hyde", judge="writer"))
    assert (run.state, run.error, run.instruction) == ("ready", "", wings.instruction)

    sent = model_server.requests()
    assert sorted(fenced(one)["query"] for one in sent) == sorted(QUERIES.values())
    assert all(fenced(one)["what counts as relevant"] == wings.instruction for one in sent)
    assert "secret" not in json.dumps([one["body"] for one in sent])
    assert texts(run).keys() == QUERIES.keys()
    assert all("writer: boundary layer" in written for written in texts(run).values())
    assert documents(run)["q1"][0] == "d4"

    calls = RetrievalCall.objects.filter(campaign=run.campaign)
    assert {call.prompt.name for call in calls} == {"hyde"}
    assert [call.outcome for call in calls] == ["labelled"] * 3
    (entry,) = ledger_rows(Campaign.objects.get(pk=run.campaign))
    assert (entry.role, entry.outcome, entry.calls) == ("rewrite", "labelled", 3)
    # The judge costs 1 USD for a million tokens in and 2 out, and the server counts both.
    assert entry.cost == pytest.approx((entry.tokens_in + 2 * entry.tokens_out) / 1e6)
    for row in Ranking.objects.filter(run=run):
        (call,) = calls.filter(query=row.query_id)
        assert (row.tokens_in, row.tokens_out) == (call.tokens_in, call.tokens_out)
        assert row.seconds >= call.milliseconds / 1000
    number = Campaign.objects.get(pk=run.campaign).number
    page = page_text(client_of(make_member(wings, "alice", Role.ADMIN)), f"/c/wings/campaigns/{number}/ledger/")
    assert "query rewriting" in page and "give no labels" in page


def test_what_searches_takes_k1_and_b_of_bm25(wings):
    run = work_on(start(wings, "rewrite", method="query2doc", judge="offline-rewriter", k1=0.9, b=0.4))
    assert run.recipe["over"] == {"kind": "bm25", "k1": 0.9, "b": 0.4}
    index, found = index_for(wings, k1=0.9, b=0.4), rankings.scores_of(run)
    for query in rankings.current_queries(wings):
        expected = index.search(texts(run)[query.external_id], 3)
        assert list(zip(*(part.tolist() for part in found[query.pk]), strict=True)) == expected


def test_mugi_asks_for_several_texts_and_weighs_the_query_by_their_length(wings, model_server):
    make_judge(model_server, "writer")
    model_server.script(writer={"written": "one two three four five six seven eight"})
    run = work_on(start(wings, "rewrite", method="mugi", judge="writer"))
    sent = [one["user"] for one in model_server.requests()]
    asked = sorted(user.partition(" for this query")[0] for user in sent if '"wing lift"' in user)
    assert len(sent) == 15 and asked == [f"Write text {number} of 5" for number in range(1, 6)]
    # 5 texts of 12 words are 60; "wing lift" has 2 words: 60 // (2 x 4) = 7; "airfoil" has 1: 60 // 4 = 15.
    counts = {query: texts(run)[query].split("\n").count(QUERIES[query]) for query in ("q1", "q3")}
    assert counts == {"q1": 7, "q3": 15}
    row = Ranking.objects.get(run=run, query__external_id="q1")
    calls = RetrievalCall.objects.filter(campaign=run.campaign, query=row.query_id)
    assert row.tokens_in == sum(call.tokens_in for call in calls)


def test_a_reranker_after_reasoning_sees_only_the_original_query(wings, model_server):
    make_judge(model_server, "thinker")
    make_judge(model_server, "ranker", provider="rerank-endpoint")
    model_server.script(thinker={"written": "wing slipstream boundary"})
    first = work_on(start(wings, "reasoning", name="thought", judge="thinker"))
    assert all("thinker: wing slipstream boundary" in written for written in texts(first).values())
    before = len(model_server.requests())
    run = work_on(start(wings, "rerank", name="again", run="thought", judge="ranker", instruction="Find the force."))
    assert (run.state, run.error, run.instruction) == ("ready", "", "Find the force.")

    sent = [one["body"] for one in model_server.requests()[before:]]
    assert sorted(one["query"] for one in sent) == sorted(QUERIES.values())
    assert "Scripted" not in json.dumps(sent)
    assert {one["instruction"] for one in sent} == {"Find the force."}
    assert all(one["top_n"] == len(one["documents"]) == 3 for one in sent)
    # The server scores by shared words: "wing lift" has both in d2 ("Lift of a wing ...").
    assert documents(run)["q1"][0] == "d2"
    assert set(documents(run)["q1"]) == set(documents(first)["q1"])
    (entry,) = ledger_rows(Campaign.objects.get(pk=run.campaign))
    assert (entry.role, entry.calls) == ("rank", 3)
    assert entry.cost == pytest.approx(entry.tokens_in / 1e6)


def test_what_was_paid_for_is_not_asked_again(wings, model_server):
    make_judge(model_server, "writer")
    runs = [work_on(start(wings, "rewrite", name=name, method="hyde", judge="writer")) for name in ("one", "two")]
    assert len(model_server.requests()) == 3 and texts(runs[0]) == texts(runs[1])
    (entry,) = ledger_rows(Campaign.objects.get(pk=runs[1].campaign))
    assert (entry.calls, entry.cached, entry.cost) == (0, 3, 0.0)
    tokens = [sorted(Ranking.objects.filter(run=run).values_list("query_id", "tokens_in")) for run in runs]
    assert tokens[0] == tokens[1]


def test_a_run_that_was_killed_before_it_stored_rankings_pays_for_nothing_twice(wings, model_server, monkeypatch):
    make_judge(model_server, "writer")
    # The first answer to one query is no JSON, so that the good one is an answer to the repair prompt.
    model_server.script(writer=[{"fault": "garbage", "contains": "airfoil", "times": 1}, {}])
    run = start(wings, "rewrite", method="hyde", judge="writer")

    def die(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(rankings, "store", die)
        with pytest.raises(KeyboardInterrupt):
            work_on(run)
    assert len(model_server.requests()) == 4
    Run.objects.filter(pk=run.pk).update(lease_until="2000-01-01T00:00:00Z")
    assert work_on(run).state == "ready"
    assert len(model_server.requests()) == 4
    assert Ranking.objects.filter(run=run).count() == 3


def test_a_budget_of_calls_stops_the_run_and_a_larger_one_lets_it_go_on(wings, model_server):
    make_judge(model_server, "writer")
    run = work_on(start(wings, "rewrite", method="hyde", judge="writer", max_calls=2))
    assert run.state == "failed" and "call limit" in run.error
    assert len(model_server.requests()) == 2 == Ranking.objects.filter(run=run).count()
    RUNS.set_limits(run, budget=None, max_calls=3)
    assert RUNS.go_on(run)
    assert work_on(run).state == "ready"
    assert len(model_server.requests()) == 3


def test_an_estimate_counts_texts_calls_and_the_price_of_the_longest(wings, model_server):
    def estimate(**told):
        return services.estimate_run(Actor("admin"), wings, RunOptions.read(told))

    make_judge(model_server, "writer")
    found = estimate(system="rewrite", method="mugi", judge="writer")
    assert found.calls.upper == 15  # 3 queries, 5 texts
    assert found.tokens_out.expected == 15 * 250 and found.tokens_out.upper == 15 * 2048
    assert found.cost.upper == pytest.approx((found.tokens_in.upper + 2 * found.tokens_out.upper) / 1e6, rel=1e-3)
    assert estimate(system="reasoning", judge="offline-rewriter").free
    make_judge(model_server, "unpriced", input_price=None, output_price=None)
    assert estimate(system="reasoning", judge="unpriced").cost is None


@pytest.mark.slow
def test_a_killed_worker_pays_for_nothing_twice(model_server, manage, instance):
    queries = {f"q{number}": f"What does mapping number {number} map?" for number in range(48)}
    things = make_texts("things", {"d1": "Mapping maps hashable values."}, queries)
    make_judge(model_server, "writer")
    model_server.script(writer={"latency": 1.0})
    command = worker_pool.worker_command(1, "killed")
    own = spawn_child(command, {**instance, **FAST}, cwd=ROOT, stderr=subprocess.DEVNULL)
    run = start(things, "rewrite", method="hyde", judge="writer")
    until(lambda: len(model_server.requests()) >= 20)
    killed = time.time()
    os.killpg(own.pid, signal.SIGKILL)
    own.wait()
    time.sleep(1.2)
    dead = time.time()
    assert not Ranking.objects.exists()
    options = ("--system", "rewrite", "--method", "hyde", "--judge", "writer", "--name", "run", "--depth", 3)
    done = manage("retrieve", "things", *options, "--wait", "--yes", "--json", environment=FAST).json
    assert (done["state"], done["queries"]) == ("ready", 48) and done["calls"] >= 48 and done["cost"] > 0
    repeated, flying = repeated_beyond_flight(model_server.requests(), killed, dead)
    assert repeated == 0 and flying
    run.refresh_from_db()
    # Answers that the dead worker had received and not yet stored come from its spool, as copies for the run.
    calls = RetrievalCall.objects.filter(campaign=run.campaign, outcome="labelled")
    assert calls.filter(cached=False).count() == 48 == calls.values("query").distinct().count()


def test_money_bounds_a_run_too_and_needs_a_price(wings, model_server):
    make_judge(model_server, "writer", parameters={"max_output_tokens": 100})
    make_judge(model_server, "unpriced", input_price=None, output_price=None)
    with pytest.raises(BadInput, match="unpriced has none"):
        start(wings, "rewrite", method="hyde", judge="unpriced", budget=1.0)
    run = work_on(start(wings, "rewrite", method="hyde", judge="writer", budget=0.000001))
    assert run.state == "failed" and "budget" in run.error
    wings.budget = 0.0000001
    wings.save()
    run = work_on(start(wings, "rewrite", name="all", method="hyde", judge="writer"))
    assert run.state == "failed" and "the collection's budget" in run.error, "it bounds all runs together"
    assert model_server.requests() == []
    wings.budget = None
    wings.save()
    run = work_on(start(wings, "rewrite", name="more", method="hyde", judge="writer", budget=1.0))
    campaign = Campaign.objects.get(pk=run.campaign)
    assert run.state == "ready"
    assert 0 < spent_by(campaign) < 0.01 and held() == (0.0, 0)
    assert collection_budget(wings).spent == pytest.approx(spent_by(campaign))


def test_a_reranker_gets_a_querys_own_instruction_unless_the_run_has_one(wings, model_server):
    make_judge(model_server, "ranker", provider="rerank-endpoint")
    make_query(wings, "plate flow", external_id="q4", instruction="Only theory.")
    work_on(start(wings, "bm25", name="first"))

    def instructions(name, **told):
        """By query, what a reranking of the first run sends."""
        sent = len(model_server.requests())
        work_on(start(wings, "rerank", name=name, run="first", judge="ranker", **told))
        return {one["body"]["query"]: one["body"]["instruction"] for one in model_server.requests()[sent:]}

    usual = dict.fromkeys(("wing lift", "heated plate"), wings.instruction)
    assert instructions("again") == {**usual, "plate flow": "Only theory."}
    assert set(instructions("own", instruction="Mine.").values()) == {"Mine."}
    # What is said as before was answered before.
    changed = instructions("changed", instructions={"q4": "Only practice.", "q1": "No theory."})
    assert changed == {"wing lift": "No theory.", "plate flow": "Only practice."}
    with pytest.raises(BadInput, match="q9"):
        start(wings, "rerank", name="wrong", run="first", judge="ranker", instructions={"q9": "?"})


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ("", "there is no line"),
        ('{"query_id": "q1"}', ":1: not a JSON object with query_id and instruction"),
        ('{"query_id": "q1", "instruction": "a"}\n{"query_id": "q1", "instruction": "b"}', ":2: query_id and"),
    ],
)
def test_a_file_of_instructions_is_refused_with_its_line(tmp_path, lines, problem):
    (tmp_path / "changed.jsonl").write_text(lines)
    with pytest.raises(BadInput, match=problem):
        read_instructions(tmp_path / "changed.jsonl")
    (tmp_path / "changed.jsonl").write_text('{"query_id": "q1", "instruction": "a"}\n')
    assert read_instructions(tmp_path / "changed.jsonl") == {"q1": "a"}


def test_faults_of_a_reranker_are_tried_again_and_one_that_leaves_documents_out_fails_the_query_alone(
    wings, model_server
):
    make_judge(model_server, "ranker", provider="rerank-endpoint")
    work_on(start(wings, "bm25", name="first"))
    short = {"shares": [0.5, 0.4, 0.3, 0.2, 0.1], "contains": "heated"}
    model_server.script(ranker=[{"fault": "drop", "times": 2}, short, {}])
    run = work_on(start(wings, "rerank", name="again", run="first", judge="ranker"))
    assert run.state == "failed" and "1 of 3" in run.error and "not asked for" in run.error
    assert set(documents(run)) == {"q1", "q3"}
    outcomes = list(RetrievalCall.objects.filter(campaign=run.campaign).values_list("outcome", flat=True))
    assert outcomes.count("error") >= 2 and outcomes.count("labelled") == 1, "each try is kept"
    model_server.script({})
    RUNS.go_on(run)
    assert work_on(run).state == "ready"


def test_a_judge_that_nobody_can_reach_ends_the_run_at_once(wings, model_server):
    make_judge(model_server, "writer")
    model_server.script(writer={"fault": "401"})
    run = work_on(start(wings, "reasoning", judge="writer"))
    assert run.state == "failed" and run.error.startswith("writer, account ") and "401" in run.error


def test_dense_runs_rank_by_cosine_and_ask_for_each_text_once(wings, model_server):
    make_judge(model_server, "vectors", provider="embed-endpoint")
    run = work_on(start(wings, "dense", judge="vectors", instruction="Find the force."))
    assert (run.state, run.error) == ("ready", "")
    sent = [text for one in model_server.requests() for text in one["body"]["input"]]
    queries = [f"Instruct: Find the force.\nQuery: {text}" for text in QUERIES.values()]
    assert sorted(sent) == sorted([*TEXTS.values(), *queries])
    assert documents(run)["q1"][0] == "d2"
    row = Ranking.objects.get(run=run, query__external_id="q1")
    assert row.tokens_in == len(queries[0]) // 4 and row.seconds > 0
    costs = {entry.role: entry.cost for entry in ledger_rows(Campaign.objects.get(pk=run.campaign))}
    tokens = sum(one["answered"] > 0 and len("\n".join(one["body"]["input"])) // 4 for one in model_server.requests())
    assert costs == {"embed": pytest.approx(tokens / 1e6)}
    assert run_cost(run)["tokens_in"] == tokens, "those of the documents, too"

    again = work_on(start(wings, "dense", name="again", judge="vectors", instruction="Find the force."))
    assert len(model_server.requests()) == 4
    assert rankings.as_run(again) == rankings.as_run(run)


def test_vectors_that_are_here_are_not_asked_for_again_when_a_dense_run_goes_on(wings, model_server):
    make_judge(model_server, "vectors", provider="embed-endpoint")
    for number in range(40):  # the first call takes 32 documents, a second one the other 12
        make_document(wings, f"Text {number}.", external_id=f"e{number:02}")
    model_server.script(
        vectors=[{"fault": "429", "times": 1, "contains": "Text 39."}, {"fault": "500", "contains": "Text 7."}, {}]
    )
    run = work_on(start(wings, "dense", judge="vectors"))
    assert run.state == "failed" and run.error.startswith("1 document embedding")
    assert [one["status"] for one in model_server.requests()].count(200) == 1
    before = len(model_server.requests())
    model_server.script({})
    RUNS.go_on(run)
    assert work_on(run).state == "ready"
    later = [one["body"]["input"] for one in model_server.requests()[before:]]
    assert sorted(map(len, later)) == [1, 1, 1, 12]
    assert Ranking.objects.filter(run=run).count() == 3


def test_a_rewriting_may_be_searched_for_by_vectors(wings, model_server):
    make_judge(model_server, "vectors", provider="embed-endpoint")
    make_judge(model_server, "writer")
    model_server.script(writer={"written": "Heat flows through a plate."})
    run = work_on(start(wings, "rewrite", method="hyde", judge="writer", over="dense:vectors"))
    assert (run.state, run.error) == ("ready", "")
    assert {found[0] for found in documents(run).values()} == {"d3"}
    assert {entry.role for entry in ledger_rows(Campaign.objects.get(pk=run.campaign))} == {"rewrite", "embed"}
    assert RetrievalCall.objects.filter(query=None).exists()


def test_the_offline_judge_writes_without_a_key_and_always_alike(wings):
    assert judges_for("rewrite")[0] == "offline-rewriter"
    one, two = (
        work_on(start(wings, "rewrite", name=name, method="query2doc", judge="offline-rewriter"))
        for name in ("one", "two")
    )
    assert (one.state, one.error, texts(one)) == ("ready", "", texts(two))
    assert "wing" in texts(one)["q1"].lower() and texts(one)["q1"] != "wing lift"
    assert {entry.cost for entry in ledger_rows(Campaign.objects.get(pk=one.campaign))} == {0.0}
    run = work_on(start(wings, "reasoning", judge="offline-rewriter"))
    assert texts(run)["q2"].startswith("heated plate ") and "boundary" in texts(run)["q2"]


def test_a_recipe_that_cannot_work_is_refused_at_once(wings, model_server):
    make_judge(model_server, "vectors", provider="embed-endpoint")
    for kind, recipe, problem in (
        ("rewrite", {"judge": "vectors"}, "'vectors' is not a judge that writes text"),
        ("dense", {"judge": "offline-rewriter"}, "embed-endpoint"),
        ("rerank", {"judge": "vectors", "run": "none"}, "has no run none"),
    ):
        with pytest.raises(BadInput, match=problem):
            start(wings, kind, **recipe)
    assert not Run.objects.exists()
