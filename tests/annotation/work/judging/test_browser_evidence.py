"""Editing contribution and evidence in a real Chromium: keys, drafts, what failed, undo, axe."""

import pytest

from corpus.evidence.targets import newest_targets
from corpus.models import Collection, Target
from tests.annotation.work.judging.test_evidence_pages import PROBLEM, failed_texts
from tests.factories import make_collection, make_document, make_member, make_pair, make_query

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

GOOD = "Water boils at 100 °C at sea level."


@pytest.fixture
def collection() -> Collection:
    return make_collection("books", title="Water")


def test_texts_are_edited_by_keyboard_and_taken_back(collection, new_page, violations, instance, console):
    query = make_query(collection, "When does water boil?", answers=[])
    for text in (
        "Water boils at 100 °C at sea level. Ice melts at 0 °C.",
        "Water boils sooner on mountains: at 93 °C.",
    ):
        failed_texts(make_pair(collection, query, make_document(collection, text)))
    page = new_page(user=make_member(collection, "alice").user)
    page.goto("/c/books/judge/")
    page.keyboard.press("1")
    page.wait_for_selector("#evidence")
    assert PROBLEM.capitalize() in page.locator(".texts .notice").inner_text()
    assert "101 °C <b>always" in page.locator("#evidence").input_value()
    assert violations(page) == []

    page.keyboard.press("e")
    assert page.evaluate("() => document.activeElement.id") == "evidence"
    page.keyboard.press("Control+A")
    page.keyboard.type("unfinished, 1")
    page.reload()
    assert page.locator("#evidence").input_value() == "unfinished, 1", "the draft came back"

    item = page.locator("#desk").get_attribute("data-item")
    page.locator("#evidence").fill(GOOD)
    page.keyboard.press("Control+Enter")
    page.wait_for_function("item => document.querySelector('#desk').dataset.item !== item", arg=item)
    assert newest_targets(collection).get().evidence == GOOD
    assert "101 °C <b>always" in page.locator("#evidence").input_value(), "the next pair's own text"

    page.keyboard.press("u")
    page.wait_for_function("item => document.querySelector('#desk').dataset.item === item", arg=item)
    assert not newest_targets(collection).exists()
    assert page.locator("#evidence").input_value() == GOOD
    page.keyboard.press("Escape")
    page.keyboard.press("1")
    page.wait_for_function("item => document.querySelector('#desk').dataset.item !== item", arg=item)
    assert newest_targets(collection).get().measures["milliseconds"] > 0
    page.keyboard.press("c")
    page.locator("#contribution").fill(" ")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#desk > .notice.error")
    assert "contribution" in page.locator("#desk > .notice.error").inner_text()
    assert Target.objects.filter(kind="person", good=True).count() == 2
    assert all("422" in line for line in console)
    console.clear()
