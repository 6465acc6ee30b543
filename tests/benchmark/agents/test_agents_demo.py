"""What the demo shows of agents: the bundled aspects, the offline agent, and nothing twice."""

import pytest

from benchmark.agents import demo
from benchmark.agents.board import build_board
from benchmark.models import AgentJob, ReferenceAnswer
from corpus import bundled
from corpus.models import Collection
from corpus.models.aspects import Aspect
from tests.benchmark.agents.scripted import finish
from tests.called import call


@pytest.mark.django_db(transaction=True)
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
