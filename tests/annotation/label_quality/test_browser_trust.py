"""Audits and the second aggregate in a real Chromium: axe, and the way from an alarm to people."""

import pytest

from annotation.models import Role
from corpus.models import Item
from tests.annotation.label_quality.test_trust import failed_route
from tests.evidence import make_campaign, make_judge
from tests.factories import make_collection, make_member

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def charlie():
    """An admin of a collection with a route that failed its audit."""
    books = make_collection("books", title="Python's reference")
    judges = [make_judge(f"judge-{n}") for n in range(3)]
    failed_route(books, make_campaign(books, judges), judges)
    return make_member(books, "charlie", Role.ADMIN).user


def test_a_failed_route_goes_to_people_after_a_question(charlie, new_page, instance, violations):
    page = new_page(user=charlie)
    page.goto("/c/books/quality/")
    page.get_by_role("link", name="Send to people").click()
    assert violations(page) == []
    page.get_by_text("10 pairs").wait_for()
    page.get_by_role("button", name="Send to people").click()
    page.get_by_text("10 pairs now wait for people").wait_for()
    assert Item.objects.filter(state="open", reason="audit").count() == 10
