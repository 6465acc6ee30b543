"""Runs that are made here: begun, made by a worker, cancelled, gone on with, also by `retrieve`."""

from datetime import timedelta

import pytest
from django.utils import timezone

from actions.services import Actor
from annotation.models import AuditEntry
from benchmark.models import Ranking, Run
from benchmark.runs import rankings, services
from benchmark.runs.builders import RUNS
from corpus.errors import BadOption
from corpus.search.bm25 import index_for
from jobs import leases
from tests.called import call
from tests.factories import make_collection, make_query
from tests.instances import until
from tests.rankings import make_texts, start_run, work_on

pytestmark = pytest.mark.django_db
TEXTS = {
    "d1": "a wing in a slipstream",
    "d2": "lift of a wing",
    "d3": "heat of a plate",
    "d4": "the boundary layer of a plate",
}
QUERIES = {"q1": "wing lift", "q2": "heated plate", "q3": "nothing that is known"}


@pytest.fixture
def wings(settings, tmp_path):
    settings.VAR = tmp_path
    return make_texts("wings", TEXTS, QUERIES)


def start(collection, name="bm25", depth=3, **recipe):
    return start_run(collection, name=name, depth=depth, **recipe)


def test_a_bm25_run_holds_what_the_index_finds(wings):
    run = work_on(start(wings))
    assert (run.state, run.done, run.total, run.error) == ("ready", 3, 3, "")
    index, found = index_for(wings), rankings.scores_of(run)
    for query in rankings.current_queries(wings):
        expected = index.search(query.text, 3)
        assert list(zip(*(part.tolist() for part in found[query.pk]), strict=True)) == expected
    assert set(Ranking.objects.values_list("seconds", flat=True)) - {None}


def test_a_name_is_free_again_only_when_its_run_is_deleted(wings):
    run = start(wings)
    with pytest.raises(BadOption, match="already has a run"):
        start(wings, k1=0.9)
    with pytest.raises(BadOption, match="letters, digits"):
        start(wings, "a b")
    assert start(wings) == run and Run.objects.count() == 1, "the same again is the same run"
    services.delete_run(Actor("admin"), run)
    assert start(wings).pk != run.pk
    run.refresh_from_db()
    assert (run.is_deleted, run.state) == (True, "cancelled")


def test_a_cancelled_run_stops_at_once_and_goes_on_with_what_it_has(wings, monkeypatch):
    run = start(wings)
    held = leases.claim(Run)
    first = rankings.current_queries(wings)[0]
    rankings.store(held, {first.pk: rankings.RankedQuery([], [])})
    assert RUNS.cancel(run) and not RUNS.cancel(run)
    RUNS.perform(held)
    run.refresh_from_db()
    assert (run.state, Ranking.objects.count(), run.done, run.total) == ("cancelled", 1, 1, 3)
    assert RUNS.go_on(run)
    assert work_on(run).state == "ready"
    assert rankings.scores_of(run)[first.pk][0].tolist() == [], "what was there was made a second time"
    assert Ranking.objects.count() == 3


def test_a_worker_that_ends_while_it_indexes_gives_the_run_back(wings):
    run = start(wings, k1=1.2, b=0.3)
    asked = []
    RUNS.perform(leases.claim(Run), lambda: bool(asked.append(1)) or len(asked) == 1)
    run.refresh_from_db()
    assert (run.state, len(asked)) == ("waiting", 1), "it went on after it was told to stop"
    assert (run.phase, run.done, run.total) == ("", 0, 3), "it tells documents where queries are meant"


def test_a_worker_whose_lease_is_over_stores_nothing(wings):
    run = start(wings)
    late = leases.claim(Run)
    Run.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    second = leases.claim(Run)
    RUNS.perform(late)
    run.refresh_from_db()
    assert (run.state, Ranking.objects.count()) == ("running", 0), "the one that came back wrote all the same"
    RUNS.perform(second)
    run.refresh_from_db()
    assert (run.state, Ranking.objects.count()) == ("ready", 3)


def test_a_run_stays_full_where_its_query_excludes_documents(wings):
    """BRIGHT: d2 would be the best for q4; the run is searched one deeper, so that two documents are left."""
    make_query(wings, "wing lift plate", external_id="q4", metadata={"excluded_ids": ["d2"]})
    run = work_on(start(wings, depth=2))
    assert [key for key, _ in index_for(wings).search("wing lift plate", 1)] == [
        wings.document_set.get(external_id="d2").pk
    ]
    found = rankings.as_run(run)["q4"]
    assert len(found) == 2 and "d2" not in found


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_lease_is_renewed_while_a_step_takes_long_and_a_cancellation_is_noticed(settings):
    settings.LEASE_SECONDS = 2.0
    run = Run.objects.create(collection=make_collection("wings"), name="slow", kind="bm25")
    held = leases.claim(Run)
    first = held.lease_until
    with leases.Lease(held) as hold:
        until(lambda: Run.objects.get().lease_until > first + timedelta(seconds=2.1))
        assert leases.claim(Run) is None, "a lease that is renewed was free"
        assert not hold.is_revoked()
        RUNS.cancel(run)
        until(hold.is_revoked)
    assert Run.objects.get().state == "cancelled"


def test_without_wait_the_run_waits_and_the_same_command_joins_it(wings):
    command = ("retrieve", "wings", "--system", "bm25", "--json")
    told = call(*command, "--k1", "0.9", "--depth", "2")
    assert (told.code, told.json["state"], told.json["run"]) == (0, "waiting", "bm25")
    run = Run.objects.get()
    assert (run.recipe, run.depth, run.collection) == ({"k1": 0.9, "b": 0.75}, 2, wings)
    assert call(*command, "--k1", "0.9", "--depth", "2").code == 0 and Run.objects.count() == 1
    other = call(*command)
    assert (other.code, other.out) == (2, "") and "already has a run" in other.err
    assert AuditEntry.objects.filter(act="run.started", details__run="bm25").count() == 2


def test_queries_that_models_wrote_are_ranked_only_when_asked_for_or_alone(wings):
    """Synthetic queries and keyword forms are in no qrels; they stood in every run."""
    for name, metadata in (("syn-1", {"synthetic": True}), ("kw-1", {"synthetic": True, "rewritten_from": "q1"})):
        make_query(wings, "plate heat", external_id=name, metadata=metadata)
    for name, options, left in (("plain", (), 2), ("every", ("--synthetic",), 0)):
        command = ("retrieve", "wings", "--system", "bm25", "--name", name, *options)
        assert call(*command).code == 0
        run = work_on(Run.objects.get(name=name))
        said = call(*command, "--json")
        assert run.total == said.json["queries"] == 5 - left and said.json["synthetic_left_out"] == left, said.err
        ranked = Ranking.objects.filter(run=run).values_list("query__external_id", flat=True)
        assert sorted(ranked) == (["q1", "q2", "q3"] if left else ["kw-1", "q1", "q2", "q3", "syn-1"])
    shown = call("retrieve", "wings", "--system", "bm25", "--name", "plain").out
    assert "2 that models wrote" in shown and "--synthetic" in shown
    only = make_collection("only")
    make_query(only, "plate heat", external_id="s1", metadata={"synthetic": True})
    assert [one.external_id for one in rankings.current_queries(only)] == ["s1"]


def test_the_command_refuses_what_cannot_be_made(wings):
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


def test_a_failed_run_goes_on_with_the_same_command(wings):
    run, command = start_run(wings), ("retrieve", "wings", "--system", "bm25", "--json")
    leases.finish(leases.claim(Run), "failed", error="the disk is full")
    assert call(*command).json["state"] == "waiting"
    run.refresh_from_db()
    assert (run.state, run.error) == ("waiting", "")
    work_on(run)
    told = call(*command)
    assert told.json["state"] == "ready" and "nothing to do" in told.err
