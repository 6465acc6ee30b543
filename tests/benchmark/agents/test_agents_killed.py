"""Agents whose worker is killed in the middle: nothing is paid twice beyond the calls in flight, the same traces."""

import subprocess
import sys
from datetime import timedelta

import pytest
from django.utils import timezone

from benchmark.agents.sampling import ensure_sample
from benchmark.agents.searching import start_search
from benchmark.models import AgentJob, Trace
from config.env import ROOT
from jobs.processes import spawn_child, stop_children
from judges.models.retrieval import RetrievalCall
from tests.benchmark.agents.scripted import ANSWERING, answer, says, search, wings
from tests.engine_parts import FAST, _standing_worker, make_judge, worker
from tests.instances import until
from tests.modelserver.fixtures import _model_server_process, model_server

__all__ = ["_model_server_process", "_standing_worker", "model_server", "worker"]
WORK = """
import django
django.setup()
from benchmark.agents import jobs
from benchmark.models import AgentJob
jobs.work_on_agents(AgentJob.objects.get(), lambda: False)
"""
AT_ONCE = 24  # Conversations of this job, and so the most calls that can be in flight.


@pytest.mark.slow
def test_a_killed_worker_loses_no_more_than_the_calls_in_flight(instance, worker, model_server):
    collection = wings(12)
    for name in ("reader", "writer"):
        make_judge(model_server, name)
    turns = [says(answer("Lift [alpha-1]."), contains=ANSWERING, latency=0.2)]
    for shown, text in (('"round": 2,', "gamma"), ('"round": 1,', "beta"), ("", "alpha")):
        turns.append(says(search(text), contains=shown, latency=0.2))
    model_server.script(reader=turns, writer=turns)
    held = {"state": "running", "fencing_token": 1, "lease_until": timezone.now() + timedelta(seconds=60)}
    options = {"retrievers": ["bm25"], "agents": ["reader", "writer"], "protocol": "fixed"}
    job = start_search(collection, ensure_sample(collection), **options, limits={"budget": None, "max_calls": None})
    AgentJob.objects.filter(pk=job.pk).update(**held)
    child = spawn_child([sys.executable, "-c", WORK], {**instance, **FAST}, cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        until(lambda: RetrievalCall.objects.filter(outcome="labelled").count() >= 60)
        child.kill()
        child.wait()
    finally:
        stop_children([child])
    AgentJob.objects.filter(pk=job.pk).update(lease_until=timezone.now())
    until(lambda: AgentJob.objects.get(pk=job.pk).is_over)
    job.refresh_from_db()
    assert (job.state, job.error) == ("ready", "")
    traces = Trace.objects.filter(job=job)
    assert traces.count() == 24
    assert {tuple(one["search"] for one in trace.rounds) for trace in traces} == {("alpha", "beta", "gamma")}
    calls = 24 * 6
    assert calls <= len(model_server.requests()) <= calls + AT_ONCE
    # What the killed worker had received and not stored is found in the cache, where it stands once more.
    paid = RetrievalCall.objects.filter(campaign=job.campaign, outcome="labelled", cached=False)
    assert paid.count() == calls
