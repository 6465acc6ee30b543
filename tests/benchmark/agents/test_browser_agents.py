"""Pages of agents and of the study of reference answers in a real Chromium: axe, and one rating by hand."""

import pytest

from annotation.models import Role
from benchmark.agents import study
from benchmark.models import StudyRating, Trace
from tests.benchmark.agents.scripted import wings, with_aspects
from tests.benchmark.agents.test_agent_pages import graded, traced
from tests.benchmark.agents.test_study import RATED, rated, started, write_references, written
from tests.factories import make_member
from tests.looks import EACH_LOOK, LOOKS, SIDEWAYS

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
HOME = "/c/wings/benchmark/agents/"


@pytest.mark.parametrize("look", EACH_LOOK)
def test_no_page_of_agents_and_of_their_study_has_a_violation(instance, new_page, violations, look):
    collection = with_aspects(wings(2))
    page = new_page(user=make_member(collection, "charlie", Role.ADMIN).user, **LOOKS[look])
    found = {}

    def look_at(name, address):
        answer = page.goto(address)
        assert answer and answer.ok, address
        found[name] = violations(page) + (["scrolls sideways"] if page.evaluate(SIDEWAYS) else [])

    for part in ("", "references/", "study/"):
        look_at(f"empty {part}", HOME + part)
    for protocol in ("adaptive", "fixed"):
        job = traced(collection, protocol)
        graded(job)
        look_at(protocol, f"{HOME}?protocol={protocol}")
    write_references(collection)
    look_at("traces", f"{HOME}{job.number}/traces/")
    look_at("trace", f"{HOME}traces/{Trace.objects.filter(job=job).first().pk}/")
    look_at("references", f"{HOME}references/")
    for kind in ("search", "grade", "reference"):
        look_at(f"start-{kind}", f"{HOME}start/{kind}/")
    opened = started(collection, 2)
    look_at("nothing to rate", f"{HOME}study/rate/")
    look_at("free", f"{HOME}study/write/")
    page.get_by_role("button", name="Reserve a query").click()
    page.get_by_label("Your answer").wait_for()
    look_at("writing", f"{HOME}study/write/")
    answer = written(opened, make_member(collection, "alice"))
    rated(opened, make_member(collection, "bob"), answer, (5, 4), (4, 4))
    look_at("rating", f"{HOME}study/rate/")
    for name in RATED:
        page.locator(f"input[name={name}][value='4']").check()
    page.get_by_role("button", name="Save ratings").click()
    page.get_by_role("button", name="Undo the last rating").wait_for()
    assert StudyRating.objects.count() == 2 and study.count_progress(opened)["rated"] == 1
    look_at("results", f"{HOME}study/")
    assert {name: problems for name, problems in found.items() if problems} == {}
