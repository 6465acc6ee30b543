"""A job with agents whose worker is killed in the middle: nothing is paid twice beyond the calls in flight."""

import subprocess
import sys
from datetime import timedelta

import pytest
from django.utils import timezone

from benchmark.models import AgentJob, Trace
from config.env import ROOT
from jobs.processes import spawn_child, stop_children
from judges.models.retrieval import RetrievalCall
from tests.benchmark.agents.scripted import ANSWERING, answer, says, search, start_search, wings
from tests.engine_parts import FAST, _standing_worker, make_judge, worker
from tests.instances import until

__all__ = ["_standing_worker", "worker"]
WORK = """
import sys
import django
django.setup()
from benchmark.agents import jobs
from benchmark.models import AgentJob
jobs.AGENTS.perform(AgentJob.objects.get(pk=int(sys.argv[1])))
"""


@pytest.mark.slow
def test_a_killed_worker_loses_no_more_than_the_calls_in_flight(instance, worker, model_server):
    collection = wings(12)
    for name in ("reader", "writer"):
        make_judge(model_server, name)
    turns = [says(answer("Lift [alpha-1]."), contains=ANSWERING, latency=0.2)]
    for shown, text in (('"round": 2,', "gamma"), ('"round": 1,', "beta"), ("", "alpha")):
        turns.append(says(search(text), contains=shown, latency=0.2))
    model_server.script(reader=turns, writer=turns)
    job = start_search(collection, retrievers=["bm25"], agents=["reader", "writer"], protocol="fixed")
    row = AgentJob.objects.filter(pk=job.pk)
    row.update(state="running", fencing_token=1, lease_until=timezone.now() + timedelta(seconds=60))
    child = spawn_child(
        [sys.executable, "-c", WORK, str(job.pk)], {**instance, **FAST}, cwd=ROOT, stderr=subprocess.DEVNULL
    )
    calls = RetrievalCall.objects.filter(outcome="labelled")
    try:
        until(lambda: calls.count() >= 60)
        child.kill()
        child.wait()
    finally:
        stop_children([child])
    row.update(lease_until=timezone.now())
    until(lambda: row.get().is_over)  # the standing worker takes it up
    job.refresh_from_db()
    assert (job.state, job.error) == ("ready", "")
    traces = Trace.objects.filter(job=job)
    assert traces.count() == 24
    assert {tuple(one["search"] for one in trace.rounds) for trace in traces} == {("alpha", "beta", "gamma")}
    assert 24 * 6 <= len(model_server.requests()) <= 24 * 7, "one call of each conversation can be in flight"
    # What the killed worker had received and not stored is found in the cache, where it stands once more.
    assert calls.filter(campaign=job.campaign, cached=False).count() == 24 * 6
