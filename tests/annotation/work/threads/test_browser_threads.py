"""Threads in a real browser: an admin answers beside the pair, an adjudicator in place, the author reads it once."""

import pytest

from annotation.models import Membership, Role
from corpus.models import Collection
from tests.factories import make_item, make_member, make_pair
from tests.looks import LOOKS, check_looks
from tests.queue_scene import claim, flag, submit

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def alice(collection: Collection) -> Membership:
    """She commented on one pair and flagged another one."""
    alice = make_member(collection, "alice")
    make_item(make_pair(collection))
    submit(alice, claim(alice), 1, comment="The text ends in the middle of a sentence.")
    make_item(make_pair(collection))
    flag(alice, claim(alice), "Two documents in one.")
    return alice


def test_a_comment_is_answered_beside_the_pair_and_read_once(collection, alice, new_page, violations, console):
    charlie = make_member(collection, "charlie", Role.ADMIN).user
    page = new_page(user=charlie, **LOOKS["light"])
    page.goto("/c/books/")
    page.get_by_role("link", name="Read and answer").click()
    page.wait_for_url("**/pairs/?answer=waiting")
    page.locator("table.pairs tbody th a").click()
    thread = page.locator("#pair-panel .thread")
    thread.get_by_label("Reply").fill("The import cut it.")
    thread.get_by_label("Outcome").select_option("corrected")
    thread.get_by_role("button", name="Reply").focus()
    page.keyboard.press("Enter")
    thread.get_by_text("The import cut it.").wait_for()
    assert thread.get_by_label("Reply").input_value() == "" and violations(page) == []
    thread.get_by_role("button", name="Reply").click()
    thread.get_by_text("Write a reply or choose an outcome").wait_for()
    console.clear()  # 422

    page = new_page(user=alice.user, **LOOKS["light"])
    page.goto("/c/books/judge/replies/")
    page.get_by_text("Outcome: document corrected").wait_for()
    page.get_by_role("button", name="Mark as read").click()
    page.get_by_text("new", exact=True).wait_for(state="detached")


def test_an_adjudicator_answers_and_keeps_the_pair_and_what_they_typed(collection, alice, new_page, violations):
    page = new_page(user=make_member(collection, "bob", Role.ADJUDICATOR).user, **LOOKS["light"])
    page.goto("/c/books/adjudicate/")
    item = page.locator("#desk").get_attribute("data-item")
    page.keyboard.press("c")
    page.locator("#comment-text").fill("Half of my reasons")
    page.locator(".opinions").get_by_label("Reply").fill("Which two?")
    page.keyboard.press("Enter")
    page.get_by_text("Which two?").wait_for()
    assert page.locator("#desk").get_attribute("data-item") == item and "alice" not in page.content()
    assert page.locator("#comment-text").input_value() == "Half of my reasons" and violations(page) == []


def test_pages_of_threads_fit_every_look(collection, alice, new_page, violations):
    charlie = make_member(collection, "charlie", Role.ADMIN).user
    check_looks(new_page, violations, alice.user, ["/c/books/judge/replies/", "/c/books/judge/history/"])
    pair = alice.assignments.get(flagged=True).item.pair_id
    check_looks(new_page, violations, charlie, [f"/c/books/pairs/{pair}/"])
