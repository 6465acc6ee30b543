"""Jobs with agents whose worker is killed in the middle: nothing is paid twice beyond the calls in flight.

What comes in the end is what comes without a kill.
"""

import subprocess
import sys
from datetime import timedelta

import pytest
from django.utils import timezone

from benchmark.agents.grading import GRADINGS
from benchmark.agents.sampling import ensure_sample
from benchmark.models import AgentJob, AnswerAssessment, Trace
from config.env import ROOT
from corpus.models import Query
from jobs.processes import spawn_child, stop_children
from judges.models.retrieval import RetrievalCall
from tests.benchmark.agents.scripted import ANSWERING, answer, says, search, start_search, wings, with_aspects
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
AT_ONCE = 24  # The most calls that can be in flight: each of the jobs keeps to it by its conversations or its judge.


GRADES = (0, 0.5, 1)


def kill_in_the_middle(job, environment, *, answered):
    """Work on a job in a process that is killed once so many calls were answered, and wait for the standing worker."""
    held = {"state": "running", "fencing_token": 1, "lease_until": timezone.now() + timedelta(seconds=60)}
    AgentJob.objects.filter(pk=job.pk).update(**held)
    command = [sys.executable, "-c", WORK, str(job.pk)]
    child = spawn_child(command, {**environment, **FAST}, cwd=ROOT, stderr=subprocess.DEVNULL)
    calls = RetrievalCall.objects.filter(outcome="labelled")
    try:
        until(lambda: calls.count() >= answered)
        child.kill()
        child.wait()
    finally:
        stop_children([child])
    AgentJob.objects.filter(pk=job.pk).update(lease_until=timezone.now())
    until(lambda: AgentJob.objects.get(pk=job.pk).is_over)
    job.refresh_from_db()
    assert (job.state, job.error) == ("ready", "")


def check_paid_once(job, model_server, calls):
    """No more requests than answers and what was in flight, and each answer was paid for once."""
    assert calls <= len(model_server.requests()) <= calls + AT_ONCE
    # What the killed worker had received and not stored is found in the cache, where it stands once more.
    paid = RetrievalCall.objects.filter(campaign=job.campaign, outcome="labelled", cached=False)
    assert paid.count() == calls


@pytest.mark.slow
def test_a_killed_worker_loses_no_more_than_the_calls_in_flight(instance, worker, model_server):
    collection = wings(12)
    for name in ("reader", "writer"):
        make_judge(model_server, name)
    turns = [says(answer("Lift [alpha-1]."), contains=ANSWERING, latency=0.2)]
    for shown, text in (('"round": 2,', "gamma"), ('"round": 1,', "beta"), ("", "alpha")):
        turns.append(says(search(text), contains=shown, latency=0.2))
    model_server.script(reader=turns, writer=turns)
    options = {"retrievers": ["bm25"], "agents": ["reader", "writer"], "protocol": "fixed"}
    job = start_search(collection, **options)
    kill_in_the_middle(job, instance, answered=60)
    traces = Trace.objects.filter(job=job)
    assert traces.count() == 24
    assert {tuple(one["search"] for one in trace.rounds) for trace in traces} == {("alpha", "beta", "gamma")}
    check_paid_once(job, model_server, 24 * 6)


@pytest.mark.slow
def test_grading_that_is_killed_comes_to_the_same_grades(instance, worker, model_server):
    collection = with_aspects(wings(30))
    sample = ensure_sample(collection, per_member=30)
    search_job = AgentJob.objects.create(
        collection=collection, kind="search", key="s", sample=sample, state="ready", options={"protocol": "adaptive"}
    )
    queries = list(Query.objects.filter(collection=collection).order_by("pk"))
    Trace.objects.bulk_create(
        Trace(
            job=search_job, query=query, retriever="bm25", agent=name, stop="answered", searches=1, rounds=[],
            answers=[{"round": 1, "answer": f"{name} on wing lift {query.external_id}.", "citations": []}],
        )
        for query in queries
        for name in ("reader", "writer")
    )  # fmt: skip
    make_judge(model_server, "grader", max_concurrency=AT_ONCE)
    script, expected = [], {}
    for place, query in enumerate(queries):
        first, quality = GRADES[place % 3], 1 + place % 5
        scores = [{"id": "a1", "score": first}, {"id": "a2", "score": 1}]
        said = {"aspect_scores": scores, "overall_quality": quality, "justification": "So."}
        script.append(says(said, contains=f"wing lift {query.external_id}.", latency=0.3))
        expected[query.pk] = ({"a1": first, "a2": 1}, quality)
    model_server.script(grader=script)
    job = GRADINGS.start_or_join(search_job.collection, {"search": search_job, "judge": "grader"})
    kill_in_the_middle(job, instance, answered=20)
    rows = list(AnswerAssessment.objects.filter(job=job).select_related("trace"))
    assert len(rows) == 60
    assert all((row.aspect_scores, row.overall_quality) == expected[row.trace.query_id] for row in rows)
    check_paid_once(job, model_server, 60)
