"""Jobs with agents: the stored sample, budgets, going on, grading what can be graded, reference answers."""

import json

import pytest

from benchmark.agents import references
from benchmark.agents.grading import GRADINGS, NO_REFERENCE
from benchmark.agents.jobs import AGENTS
from benchmark.agents.references import REFERENCES
from benchmark.agents.sampling import ensure_sample
from benchmark.models import AgentJob, AnswerAssessment, ReferenceAnswer, Suite, SuiteMember, Trace
from corpus.errors import BadInput, BadOption
from corpus.models import Query
from corpus.models.aspects import Aspect
from judges.costs.ledger import ledger_rows
from judges.models import Campaign
from judges.models.retrieval import RetrievalCall
from tests.benchmark.agents.scripted import (
    agent,
    answer,
    finish,
    says,
    search,
    start_search,
    wings,
    with_aspects,
)
from tests.engine_parts import make_judge

pytestmark = pytest.mark.django_db(transaction=True)
GOOD = {"aspect_scores": [{"id": "a1", "score": 1}, {"id": "a2", "score": 0.5}], "overall_quality": 4}


def grade(search_job, **options):
    """Grade the answers of a search with the scripted judge."""
    return finish(GRADINGS.start_or_join(search_job.collection, {"search": search_job, "judge": "grader", **options}))


GOOD |= {"justification": "It lifts."}


@pytest.fixture
def agents(settings, tmp_path, model_server):
    """Two agents and a judge that grades; a function that starts the job of both agents."""
    settings.VAR, settings.RETRY_SECONDS = tmp_path, 0.01
    for name in ("reader", "writer", "grader"):
        make_judge(model_server, name)
    script = agent(search("alpha"), search("beta"), search("gamma"), answers=answer("Lift [alpha-1]."))
    model_server.script(reader=script, writer=script, grader=says(GOOD))

    def start(collection, **values):
        values = {"agents": ["reader", "writer"], "protocol": "fixed", **values}
        return start_search(collection, retrievers=["bm25"], **values)

    return start


def test_the_sample_is_drawn_once_and_is_the_same_for_all():
    """C10."""
    first, second = wings(40, "first"), wings(10, "second")
    suite = Suite.objects.create(name="both")
    for place, one in enumerate((first, second), 1):
        SuiteMember.objects.create(suite=suite, collection=one, place=place)
    sample = ensure_sample(suite)
    assert {key: len(keys) for key, keys in sample.queries.items()} == {str(first.pk): 25, str(second.pk): 10}
    assert ensure_sample(suite, per_member=25, seed=0) == sample == ensure_sample(suite)
    for other in ({"seed": 1}, {"per_member": 5}):
        with pytest.raises(BadOption) as refused:
            ensure_sample(suite, **other)
        assert refused.value.problems[0][0] == "sample"
    assert ensure_sample(first, seed=3).queries[str(first.pk)] != sample.queries[str(first.pk)]
    third = wings(6, "third")
    query = Query.objects.filter(collection=third).first()
    Aspect.objects.create(query=query, external_id="a1", text="lift")
    assert ensure_sample(third).queries == {str(third.pk): [query.pk]}, "those with aspects, where there are any"


def test_a_budget_that_ends_leaves_whole_traces_and_the_same_command_goes_on(agents, model_server):
    """C11, the budget: 24 calls make both agents' traces of two queries."""
    collection = wings(2)
    job = finish(agents(collection, max_calls=9))
    assert job.state == "failed" and "Stopped by" in job.error
    whole = Trace.objects.filter(job=job)
    assert whole.count() < 4 and all(len(one.answers) == 3 for one in whole)
    paid = len(model_server.requests())
    assert paid == 9
    again = agents(collection, max_calls=100)
    assert again.pk == job.pk
    job = finish(again)
    assert (job.state, job.done, job.total) == ("ready", 4, 4)
    # Equal questions of the two queries are none: every call was made once.
    assert len(model_server.requests()) == 24
    assert RetrievalCall.objects.filter(campaign=job.campaign, cached=False).count() == 24
    assert sum(one.calls for one in ledger_rows(Campaign(pk=job.campaign))) == 24


def test_a_job_that_was_left_in_the_middle_goes_on_without_paying_twice(agents, model_server, monkeypatch):
    """C11: the process is gone after an answer is stored and before its trace is."""
    from benchmark.agents import searching

    collection = wings(2)
    job = agents(collection)

    def die(*_args):
        raise RuntimeError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(searching, "_store_trace", die)
        assert finish(job).state == "failed"
    asked = len(model_server.requests())
    assert asked == 24 and not Trace.objects.exists()
    AGENTS.go_on(job)
    assert finish(job).state == "ready"
    assert len(model_server.requests()) == asked and Trace.objects.count() == 4


def test_a_provider_that_is_away_loses_no_trace(agents, model_server):
    script = agent(search("alpha"))
    model_server.script(reader=script, writer=[{"fault": "500", "contains": "wing lift 1"}, *script])
    job = finish(agents(wings(2)))
    assert job.state == "failed" and "got no response" in job.error and job.done == 3
    model_server.script(reader=script, writer=script)
    AGENTS.go_on(job)
    assert finish(job).state == "ready" and Trace.objects.filter(job=job).count() == 4


@pytest.mark.parametrize("kind", ["grade", "reference"])
def test_a_budget_that_ends_keeps_what_is_whole_of_grades_and_references(agents, model_server, kind):
    """C11, the budget."""
    collection = with_aspects(wings(6))
    search_job = finish(agents(collection, rounds=1, agents=["reader"]))
    model_server.script(grader=says(GOOD if kind == "grade" else {"answer": "Lift is so [alpha-2], and so [beta-1]."}))
    jobs, about = (GRADINGS, {"search": search_job}) if kind == "grade" else (REFERENCES, {})

    def start(max_calls):
        values = {**about, "judge": "grader", "budget": None, "max_calls": max_calls}
        return jobs.start_or_join(search_job.collection, values)

    before = len(model_server.requests())
    job = finish(start(4))
    made = (AnswerAssessment if kind == "grade" else ReferenceAnswer).objects.filter(job=job, problem="")
    assert (job.state, job.done, job.total) == ("failed", 4, 6) and "Stopped by" in job.error
    assert made.count() == 4 == len(model_server.requests()) - before
    again = start(100)
    assert again.pk == job.pk and finish(again).state == "ready"
    assert made.count() == 6 == len(model_server.requests()) - before


def test_other_options_are_another_job_and_the_same_ones_are_not(agents):
    collection = wings()
    first = agents(collection)
    assert agents(collection).pk == first.pk
    assert agents(collection, protocol="adaptive").pk != first.pk
    assert agents(collection, agents=["reader"]).pk != first.pk
    for values, problem in (({"rounds": 11}, "takes 1 to 10 rounds"), ({"agents": ["nobody"]}, "'nobody' is not")):
        with pytest.raises(BadInput, match=problem):
            agents(collection, **values)
    assert AgentJob.objects.count() == 3


def test_every_answer_is_graded_without_a_word_about_its_origin(agents, model_server):
    search_job = finish(agents(with_aspects(wings(2))))
    job = grade(search_job)
    assert (job.state, job.done) == ("ready", 12), job.error
    row = AnswerAssessment.objects.filter(job=job).first()
    assert (row.aspect_scores, row.importances) == ({"a1": 1.0, "a2": 0.5}, {"a1": 3, "a2": 1})
    assert (row.completeness, row.overall_quality, row.problem) == (5, 4, "")  # 4.5 goes up
    asked = len(model_server.requests())
    even = grade(search_job, halves="even")
    assert len(model_server.requests()) == asked, "none is asked again"
    assert set(AnswerAssessment.objects.filter(job=even).values_list("completeness", flat=True)) == {4}
    sent = [json.dumps(one["body"]) for one in model_server.requests() if one["model"] == "grader"]
    assert len(set(sent)) == 2  # one for each query: nothing in it depends on the agent or the round
    assert not any(word in one for one in sent for word in ("bm25", "reader", "writer"))


@pytest.mark.parametrize(
    ("malformed", "problem"),
    [
        ({"aspect_scores": GOOD["aspect_scores"][:1]}, "has not every aspect id exactly once"),
        ({"aspect_scores": [*GOOD["aspect_scores"], {"id": "a3", "score": 0}]}, "has not every aspect id exactly once"),
        ({"aspect_scores": [{"id": "a1", "score": 0.7}, {"id": "a2", "score": 1}]}, "it is not 0, 0.5 or 1"),
        ({"overall_quality": 6}, "less than or equal to 5"),
    ],
)
def test_a_malformed_grading_is_repaired_once_and_then_named(agents, model_server, malformed, problem):
    """C8."""
    search_job = finish(agents(with_aspects(wings()), rounds=1, agents=["reader"]))
    model_server.script(grader=says({**GOOD, **malformed}))
    before = len(model_server.requests())
    row = AnswerAssessment.objects.get(job=grade(search_job))
    assert problem in row.problem
    assert (row.overall_quality, row.completeness, row.aspect_scores) == (None, None, {})
    assert len(model_server.requests()) - before == 2


def test_an_answer_without_anything_to_compare_it_with_is_named(agents):
    collection = with_aspects(wings(2))
    Query.objects.filter(collection=collection, external_id="q1").update(answers=[])
    search_job = finish(agents(collection, rounds=1, agents=["reader"]))
    rows = AnswerAssessment.objects.filter(job=grade(search_job))
    assert dict(rows.values_list("trace__query__external_id", "problem")) == {"q0": "", "q1": NO_REFERENCE}
    Query.objects.filter(collection=collection).update(answers=[])
    with pytest.raises(BadInput, match="reference answers"):
        grade(search_job)


def test_references_are_written_from_the_passages_of_the_aspects_alone(agents, model_server):
    collection = with_aspects(wings(2))
    good = {"answer": "Lift is so [alpha-2], and so [beta-1]."}
    strange = says({"answer": "Lift [alpha-1] [gamma-1] [beta-1]."}, contains="wing lift 1")
    model_server.script(grader=[strange, says(good)])
    job = finish(REFERENCES.start_or_join(collection, {"judge": "grader"}))
    assert job.state == "ready"
    first, second = ReferenceAnswer.objects.filter(job=job).order_by("query__external_id")
    assert (first.answer, first.citations, first.model) == (good["answer"], ["alpha-2", "beta-1"], "grader")
    assert second.answer == "" and "cites a document" in second.problem
    sent = model_server.requests()[0]["user"]
    assert "beta wing number 1" in sent and "beta wing number 2" not in sent and "It lifts." not in sent
    assert [one["query_id"] for one in references.describe_references(job)] == ["q0"]
    assert len(model_server.requests()) == 3
    with pytest.raises(BadInput, match="aspect"):
        REFERENCES.start_or_join(wings(1, "bare"), {"judge": "grader"})
