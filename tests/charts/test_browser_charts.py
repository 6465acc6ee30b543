"""Charts in a real Chromium: what a mark stands for is said on hover, focus and touch, and a mark opens its pairs."""

import gzip
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.large_site import analyse, large_site
from tests.plugin_browser import NewPage

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
SCRIPT = Path(__file__).parents[2] / "static" / "js" / "charts.js"
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


@pytest.fixture
def charlie(instance: dict[str, str]) -> object:
    """An admin of judged pairs: the Overview shows where they stand."""
    _books, _campaign, charlie = large_site(90, "books")
    analyse()
    return charlie.user


def open_chart(new_page: NewPage, user: object, **look: object) -> "Page":
    page = new_page(user=user, **look)
    page.set_default_timeout(8_000)
    page.goto("/c/books/")
    page.locator("#progress-details > summary").click()
    return page


def test_a_mark_is_read_by_mouse_and_by_keys_and_opens_its_pairs(charlie, new_page, violations) -> None:
    assert len(SCRIPT.read_bytes()) < 4000 and len(gzip.compress(SCRIPT.read_bytes())) < 2048
    page = open_chart(new_page, charlie)
    tip, marks = page.locator(".chart-tip").first, page.locator(".chart").first.locator("[data-at]")
    marks.last.locator("rect, path, circle").first.hover()
    told = page.locator(".chart table").first.locator("tbody tr").last.locator("td").last.text_content()
    assert tip.inner_text().endswith(f": {told}")
    page.mouse.move(5, 5)
    assert tip.inner_text() == ""
    for key in ("Tab", "ArrowRight", "ArrowRight", "ArrowLeft"):
        page.keyboard.press(key)
    assert page.locator(".chart .at").evaluate("mark => mark === document.querySelectorAll('.chart [data-at]')[1]")
    assert tip.inner_text() and violations(page) == []
    page.keyboard.press("Escape")
    assert (tip.inner_text(), page.locator(".chart .at").count()) == ("", 0)
    page = open_chart(new_page, charlie)
    page.keyboard.press("Tab")
    while "escalated" not in page.locator(".chart-tip").first.inner_text():
        before = page.locator(".chart .at").get_attribute("data-at")
        page.keyboard.press("ArrowRight")
        assert page.locator(".chart .at").get_attribute("data-at") != before, "no mark tells of escalated pairs"
    page.keyboard.press("Enter")
    page.wait_for_url("**/pairs/*state=escalated*")


def test_a_touch_tells_first_and_the_name_it_shows_is_the_link(charlie: object, new_page: NewPage) -> None:
    page = open_chart(new_page, charlie, **PHONE)
    page.locator(".chart rect").first.tap()
    page.locator(".chart-tip a").first.wait_for()
    assert page.url.endswith("/c/books/")
    page.locator(".chart-tip a").first.tap()
    page.wait_for_url("**/c/books/pairs/*")
