"""Ctrl-K in a real browser: by keys alone, accessible in every look, and out of the way where people judge or type."""

from typing import Any

import pytest

from annotation.models import User
from tests.admin_site import judged_collection, people_at_work
from tests.annotation.home.overview.test_admin_browser import fits
from tests.looks import EACH_LOOK, LOOKS

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
OPEN = "document.querySelector('#find').open"


@pytest.fixture
def charlie(instance: dict[str, str]) -> User:
    return people_at_work(judged_collection())["charlie"].user


def results(page: Any) -> list[str]:
    return [text.strip().split("\n")[0] for text in page.locator("#find [role=option]").all_inner_texts()]


def search(page: Any, typed: str, first: str) -> None:
    """Type, and wait until the first result is chosen."""
    page.keyboard.type(typed)
    page.locator("#find [aria-selected=true]", has_text=first).wait_for()


def test_by_keys_alone_a_page_a_query_and_a_setting_are_opened(charlie: User, new_page) -> None:
    page = new_page(user=charlie, **LOOKS["light"])
    page.goto("/c/books/campaigns/")
    page.keyboard.press("Control+k")
    assert page.evaluate(OPEN)
    page.locator("#find-said", has_text="Search pages, actions, settings").wait_for()
    search(page, "lead", "Leaderboard")
    assert results(page)[0] == "Leaderboard"
    page.keyboard.press("Enter")
    page.wait_for_url("**/c/books/benchmark/")
    page.keyboard.press("/")
    search(page, "with statement", "What does the with")
    field = page.locator("#find input")
    first = field.get_attribute("aria-activedescendant")
    assert first == "find-queries-1" and field.get_attribute("aria-expanded") == "true"
    page.keyboard.press("ArrowUp")
    last = field.get_attribute("aria-activedescendant")
    assert last != first and page.locator(f"#{last}[aria-selected=true]").count() == 1
    page.keyboard.press("ArrowDown")
    assert field.get_attribute("aria-activedescendant") == first
    page.keyboard.press("Enter")
    page.wait_for_url("**/c/books/pairs/?q=q*")
    page.keyboard.press("Control+k")
    search(page, "daily budget", "Daily budget")
    page.keyboard.press("Enter")
    page.wait_for_url("**/c/books/settings/#id_daily_budget")


def test_escape_gives_the_focus_back_and_a_slash_is_a_letter_in_a_field(charlie: User, new_page) -> None:
    page = new_page(user=charlie, **LOOKS["light"])
    page.goto("/c/books/settings/")
    page.locator(".brand").focus()
    page.keyboard.press("Control+k")
    search(page, "a", "a campaign")
    for _ in range(4):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement === document.body || !!document.activeElement.closest('#find')")
    page.locator("#find input").focus()
    page.keyboard.press("Escape")
    assert not page.evaluate(OPEN) and page.evaluate("document.activeElement.matches('.brand')")
    page.locator("#id_title").fill("")
    page.keyboard.type("a/b")
    assert page.locator("#id_title").input_value() == "a/b" and not page.evaluate(OPEN)
    page.locator(".find-button").click()
    assert page.evaluate(OPEN) and page.url.endswith("/settings/")
    page.goto("/c/books/pairs/")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "q" and not page.evaluate(OPEN), "pages keep their own"
    page.goto("/c/books/judge/")
    page.keyboard.press("Control+k")
    page.keyboard.press("/")
    assert page.locator("dialog[open], .find-button").count() == 0


@pytest.mark.parametrize("look", EACH_LOOK)
def test_the_dialog_is_accessible_empty_full_and_without_results(charlie, new_page, violations, look):
    page = new_page(user=charlie, **LOOKS[look])
    page.goto("/c/books/")
    width = page.evaluate("document.querySelector('main').getBoundingClientRect().width")
    page.keyboard.press("Control+k")
    page.locator("#find-said", has_text="Search pages").wait_for()
    found = {"empty": violations(page)}
    search(page, "a", "a campaign")
    found["full"] = violations(page)
    assert len(results(page)) > 6 and fits(page)
    assert page.evaluate("document.querySelector('main').getBoundingClientRect().width") == width, "nothing moves"
    page.keyboard.type("zebra")
    page.locator("#find-said", has_text="Nothing found").wait_for()
    found["nothing"] = violations(page)
    assert page.locator("#find input").get_attribute("aria-expanded") == "false"
    assert found == {"empty": [], "full": [], "nothing": []}


def test_without_scripts_the_button_leads_to_a_page(charlie, new_page, violations):
    page = new_page(user=charlie, java_script_enabled=False)
    page.goto("/c/books/")
    page.get_by_role("link", name="Search").click()
    page.locator("main [name=q]").fill("leaderboard")
    page.locator("main").get_by_role("button", name="Search").click()
    page.locator("main").get_by_role("link", name="Leaderboard").click()
    page.wait_for_url("**/c/books/benchmark/")
    scripted = new_page(user=charlie)
    scripted.goto("/c/books/find/?q=a")
    assert violations(scripted) == []
