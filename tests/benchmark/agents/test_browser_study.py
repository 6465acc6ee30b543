"""The pages of the study of reference answers in a real Chromium: axe, and one rating by hand."""

import pytest

from annotation.models import Role
from benchmark.agents import study
from benchmark.models import StudyRating
from tests.benchmark.agents.test_study import HOME, rated, referenced, started, written
from tests.factories import make_member
from tests.looks import EACH_LOOK, LOOKS, SIDEWAYS

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("look", EACH_LOOK)
def test_no_page_of_the_study_has_a_violation(instance, new_page, violations, look):
    collection = referenced()
    alice, bob = make_member(collection, "alice"), make_member(collection, "bob")
    page = new_page(user=make_member(collection, "charlie", Role.ADMIN).user, **LOOKS[look])
    found = {}

    def look_at(name, address):
        answer = page.goto(address)
        assert answer and answer.ok, address
        found[name] = violations(page) + (["scrolls sideways"] if page.evaluate(SIDEWAYS) else [])

    look_at("none", HOME)
    opened = started(collection)
    look_at("nothing to rate", f"{HOME}rate/")
    look_at("free", f"{HOME}write/")
    page.get_by_role("button", name="Reserve a query").click()
    page.get_by_label("Your answer").wait_for()
    look_at("writing", f"{HOME}write/")
    answer = written(opened, alice)
    rated(opened, bob, answer, (5, 4), (4, 4))
    look_at("rating", f"{HOME}rate/")
    for name in ("first_completeness", "first_quality", "second_completeness", "second_quality"):
        page.locator(f"input[name={name}][value='4']").check()
    page.get_by_role("button", name="Save ratings").click()
    page.get_by_role("button", name="Undo the last rating").wait_for()
    assert StudyRating.objects.count() == 2 and study.count_progress(opened)["rated"] == 1
    look_at("results", HOME)
    assert {name: problems for name, problems in found.items() if problems} == {}
