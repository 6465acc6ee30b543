"""The table of pairs in a real browser: keyboard, selection, a bulk act, saved views; accessible in every look."""

from collections.abc import Callable
from typing import Any

import pytest

from annotation.models import User
from corpus.models import Item
from tests.admin_site import judged_collection, people_at_work
from tests.annotation.home.overview.test_admin_browser import fits
from tests.stages import first_quick

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
LIGHT = {"viewport": {"width": 1280, "height": 900}}
DARK = {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"}
PHONE = {"viewport": {"width": 390, "height": 844}}


@pytest.fixture
def charlie(instance: dict[str, str]) -> User:
    return people_at_work(judged_collection())["charlie"].user


def test_pairs_are_walked_selected_sent_and_taken_back_by_keyboard(charlie: User, new_page: Callable[..., Any]) -> None:
    page = new_page(user=charlie, **LIGHT)
    page.goto("/c/books/pairs/?sort=query")
    heights = page.eval_on_selector_all("table.pairs tbody tr", "rows => rows.map(row => row.offsetHeight)")
    assert set(heights) <= {40, 41}, "rows of 40 px and their line"
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.keyboard.press("j")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("k")
    page.keyboard.press("x")
    assert page.locator("tr.selected").count() == 2
    assert page.locator("#selected-count").inner_text() == "Pairs selected: 2"
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "q"
    page.keyboard.type("jx")
    assert page.locator("tr.selected").count() == 2, "letters in the search are letters"
    page.locator("#select-page").check()
    assert page.locator("tr.selected").count() == 18
    page.get_by_label("Action").select_option("send")
    page.get_by_role("button", name="Continue").click()
    page.wait_for_url("**/pairs/actions/*/")
    assert "18\npairs selected" in page.locator(".grid").inner_text()
    page.get_by_role("button", name="Confirm").click()
    page.get_by_role("button", name="Undo").wait_for()
    assert Item.objects.filter(reason="requested", state="open").exists()
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Action undone.").wait_for()
    assert not Item.objects.filter(reason="requested", state="open").exists()
    page.goto("/c/books/pairs/")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/pairs/*/")


@pytest.mark.parametrize("look", first_quick([LIGHT, DARK, PHONE]), ids=["light", "dark", "phone"])
def test_the_table_and_its_acts_are_accessible_and_fit(
    charlie: User, new_page: Callable[..., Any], violations: Callable[[Any], list[str]], look: dict[str, Any]
) -> None:
    page = new_page(user=charlie, **look)
    page.goto("/c/books/pairs/?state=labelled&sort=-label")
    if look is PHONE:
        page.get_by_text("Filters and views").click()
    page.locator("#views-manage summary").click()
    page.get_by_label("Name of the current view").fill("Labelled by judges")
    page.get_by_role("button", name="Save view").click()
    page.get_by_text("saved.").wait_for()
    page.locator("table.pairs input[name=pair]").first.check()
    found = violations(page) + ([] if fits(page) else ["scrolls sideways"])
    page.goto("/c/books/pairs/")
    found += violations(page)
    page.locator("#select-all").check()
    page.get_by_label("Action").select_option("priority")
    page.get_by_role("button", name="Continue").click()
    page.wait_for_url("**/pairs/actions/*/")
    found += violations(page) + ([] if fits(page) else ["the plan scrolls sideways"])
    page.get_by_role("button", name="Confirm").click()
    page.get_by_role("button", name="Undo").wait_for()
    found += violations(page)
    page.goto("/c/books/pairs/actions/")
    found += violations(page) + ([] if fits(page) else ["the list scrolls sideways"])
    assert found == []


def test_on_a_phone_the_table_begins_in_the_first_screen_and_filters_open_in_place(
    charlie: User, new_page: Callable[..., Any]
) -> None:
    page = new_page(user=charlie, **PHONE)
    page.goto("/c/books/pairs/")
    row = page.locator("table.pairs tbody tr").first.bounding_box()
    assert row["y"] + row["height"] <= PHONE["viewport"]["height"], f"the first pair ends at {row}"
    assert not page.locator("#q").is_visible()
    page.get_by_text("Filters and views").click()
    page.get_by_label("State", exact=True).select_option("labelled")
    page.wait_for_url("**state=labelled**")
    assert page.locator("#state").is_visible(), "they stay open while the table changes"
    assert page.locator("#saved-views").count() == 1
    assert page.locator("#saved-views input[name=query]").first.get_attribute("value") == "state=labelled"


def test_without_a_script_boxes_and_buttons_do_the_same(charlie: User, new_page: Callable[..., Any]) -> None:
    page = new_page(user=charlie, java_script_enabled=False, **LIGHT)
    page.goto("/c/books/pairs/")
    page.get_by_role("link", name="Label", exact=True).click()
    page.wait_for_url("**sort=label**")
    page.locator("table.pairs input[name=pair]").first.check()
    page.get_by_role("button", name="Continue").click()
    page.wait_for_url("**/pairs/actions/*/")
    assert "1\npair selected" in page.locator(".grid").inner_text()
