"""`retrieve`: runs made from the shell: joined by the same command, gone on with after a failure."""

import pytest

from annotation.models import AuditEntry
from benchmark.models import Ranking, Run
from benchmark.runs import builders, rankings
from jobs import leases
from tests.called import call
from tests.factories import make_collection, make_query
from tests.rankings import make_texts, start_run

pytestmark = pytest.mark.django_db


def wings(queries=3):
    texts = {"d1": "a wing in a slipstream", "d2": "lift of a wing", "d3": "heat of a plate"}
    return make_texts("wings", texts, {f"q{number}": f"wing lift {number}" for number in range(queries)})


def test_without_wait_the_run_waits_and_the_same_command_joins_it():
    collection = wings()
    said = call("retrieve", "wings", "--system", "bm25", "--k1", "0.9", "--depth", "2", "--json")
    assert (said.code, said.json["state"], said.json["run"]) == (0, "waiting", "bm25")
    run = Run.objects.get()
    assert (run.recipe, run.depth, run.collection) == ({"k1": 0.9, "b": 0.75}, 2, collection)
    assert call("retrieve", "wings", "--system", "bm25", "--k1", "0.9", "--depth", "2", "--json").code == 0
    assert Run.objects.count() == 1
    other = call("retrieve", "wings", "--system", "bm25", "--json")
    assert (other.code, other.out) == (2, "") and "already has a run" in other.err
    assert AuditEntry.objects.filter(act="run.started", details__run="bm25").count() == 2


def test_queries_that_models_wrote_are_ranked_only_when_asked_for_or_alone():
    """Synthetic queries and keyword forms are in no qrels; they stood in every run."""
    collection = wings()
    for name, metadata in (("syn-1", {"synthetic": True}), ("kw-1", {"synthetic": True, "rewritten_from": "q0"})):
        make_query(collection, "plate heat", external_id=name, metadata=metadata)
    for name, options, left in (("plain", (), 2), ("every", ("--synthetic",), 0)):
        assert call("retrieve", "wings", "--system", "bm25", "--name", name, *options).code == 0
        run = leases.claim(Run, name=name)
        assert run.total == 5 - left
        builders.RUNS.perform(run, lambda: False)
        said = call("retrieve", "wings", "--system", "bm25", "--name", name, *options, "--json")
        assert (said.json["queries"], said.json["synthetic_left_out"]) == (5 - left, left), said.err
        ranked = Ranking.objects.filter(run=run).values_list("query__external_id", flat=True)
        assert sorted(ranked) == (["q0", "q1", "q2"] if left else ["kw-1", "q0", "q1", "q2", "syn-1"])
    shown = call("retrieve", "wings", "--system", "bm25", "--name", "plain").out
    assert "2 that models wrote" in shown and "--synthetic" in shown
    only = make_collection("only")
    make_query(only, "plate heat", external_id="s1", metadata={"synthetic": True})
    assert [one.external_id for one in rankings.current_queries(only)] == ["s1"]


def test_the_command_refuses_what_cannot_be_made():
    wings()
    for args, problem in (
        (("nowhere", "--system", "bm25"), 'There is no collection "nowhere"'),
        (("wings", "--system", "bm25", "--method", "zscore"), "--method: "),
        (("wings", "--system", "hybrid", "--runs", "a,b"), "wings has no run a"),
        (("wings", "--system", "hybrid", "--run", "a", "--k1", "0.9"), "wings has no run a"),
        (("wings", "--system", "bm25", "--name", "a/b"), "letters, digits"),
    ):
        said = call("retrieve", *args, "--json")
        assert (said.code, said.out) == (2, "") and problem in said.err
    said = call("retrieve", "wings", "--system", "bm25", "--estimate", "--json")
    assert "no calls" in said.json["estimate"] and not Run.objects.exists()


def test_a_failed_run_goes_on_with_the_same_command():
    collection = wings()
    run = start_run(collection)
    leases.finish(leases.claim(Run), "failed", error="the disk is full")
    assert call("retrieve", "wings", "--system", "bm25", "--json").json["state"] == "waiting"
    run.refresh_from_db()
    assert (run.state, run.error) == ("waiting", "")
    builders.RUNS.perform(leases.claim(Run), lambda: False)
    said = call("retrieve", "wings", "--system", "bm25", "--json")
    assert said.json["state"] == "ready" and "nothing to do" in said.err
