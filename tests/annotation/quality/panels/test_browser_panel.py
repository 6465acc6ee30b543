"""The page of the panel in a real Chromium: axe in three looks, and the way from a proposal to a panel."""

import pytest

from annotation.models import Role
from judges.models import Panel
from tests.factories import make_collection, make_member
from tests.looks import LOOKS
from tests.panel_scene import PAIRS, add_pairs, answers, grade, refer, vote

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def charlie():
    """An admin of a collection with nine candidates."""
    books = make_collection("books", title="Python's reference", grades=3, relevant_from=2, lab=True)
    add_pairs(books, "q1", [f"d{n}" for n in range(PAIRS)])
    votes, truth = answers(1)
    vote(books, votes)
    refer(books, truth)
    grade(books, "gpt", "judge-import", [3 * int(verdict) for verdict in votes[0]])
    return make_member(books, "charlie", Role.ADMIN).user


def test_an_admin_makes_a_proposal_the_panel_and_no_page_has_a_violation(charlie, new_page, instance, violations):
    for look in LOOKS.values():
        page = new_page(user=charlie, **look)
        page.goto("/c/books/panel/")
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "only tables scroll sideways"
        page.get_by_role("link", name="Run self-check").click()
        page.get_by_role("heading", name="Run self-check?").wait_for()
        assert violations(page) == []
        page.get_by_role("link", name="Back").click()
        page.get_by_role("link", name="Use as panel").first.click()
        page.get_by_role("heading", name="Use these judges as the panel?").wait_for()
        assert violations(page) == []
    page.get_by_role("button", name="Use as panel").click()
    page.get_by_text("Panel books:chosen now votes with").wait_for()
    made = Panel.objects.get(name="books:chosen")
    assert len(made.ensemble) == 5 and not {"coin", "gpt"} & set(made.ensemble)
