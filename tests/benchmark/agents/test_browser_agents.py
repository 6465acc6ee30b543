"""Pages of agents in a real Chromium: axe, light, dark, a phone."""

import pytest

from annotation.models import Role
from benchmark.models import AgentJob, Trace
from corpus.models import Query
from tests.benchmark.agents.scripted import wings, with_aspects
from tests.benchmark.agents.test_agent_pages import graded, traced
from tests.factories import make_member
from tests.looks import EACH_LOOK, LOOKS, SIDEWAYS

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
HOME = "/c/wings/benchmark/agents/"


@pytest.mark.parametrize("look", EACH_LOOK)
def test_no_page_of_agents_has_a_violation(instance, new_page, violations, look):
    collection = with_aspects(wings(2))
    page = new_page(user=make_member(collection, "charlie", Role.ADMIN).user, **LOOKS[look])
    found = {}

    def look_at(name, address):
        answer = page.goto(address)
        assert answer and answer.ok, address
        found[name] = violations(page) + (["scrolls sideways"] if page.evaluate(SIDEWAYS) else [])

    look_at("empty", HOME)
    look_at("no-references", f"{HOME}references/")
    for protocol in ("adaptive", "fixed"):
        job = traced(collection, protocol)
        graded(job)
    written = AgentJob.objects.create(collection=collection, kind="reference", key="r", state="ready")
    for query in Query.objects.filter(collection=collection):
        written.references.create(query=query, answer="It lifts [alpha-1].", citations=["alpha-1"], model="writer")
    look_at("fixed", f"{HOME}?protocol=fixed")
    look_at("adaptive", f"{HOME}?protocol=adaptive")
    look_at("traces", f"{HOME}{job.number}/traces/")
    look_at("trace", f"{HOME}traces/{Trace.objects.filter(job=job).first().pk}/")
    look_at("references", f"{HOME}references/")
    for kind in ("search", "grade", "reference"):
        look_at(f"start-{kind}", f"{HOME}start/{kind}/")
    assert {name: problems for name, problems in found.items() if problems} == {}
