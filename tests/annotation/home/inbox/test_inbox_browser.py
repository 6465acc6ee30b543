"""The inbox in a real browser: count, title and notices on every page of an admin, without a reload."""

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from annotation.models import Role, User
from annotation.models.imports import FileImport
from corpus.models import Collection
from tests.admin_site import judged_collection
from tests.factories import make_item, make_member, make_pair
from tests.looks import EACH_LOOK, LOOKS

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
ASK = """() => {
    const address = document.getElementById("inbox").getAttribute("hx-get")
    htmx.ajax("GET", address, {source: "#inbox", target: "#inbox", swap: "outerHTML"})
}"""
# What moved since the page was there, with how far.
SHIFTS = """() => new Promise(done => {
    const shifts = []
    new PerformanceObserver(list => shifts.push(...list.getEntries())).observe({type: "layout-shift", buffered: true})
    setTimeout(() => done(shifts.map(shift => [shift.value, ...shift.sources.map(
        ({node, previousRect, currentRect}) => (node?.outerHTML || node?.textContent || "").slice(0, 200)
            + JSON.stringify([previousRect, currentRect]))])), 300)
})"""


@pytest.fixture
def charlie(instance: dict[str, str]) -> User:
    return make_member(judged_collection(), "charlie", Role.ADMIN).user


def refuse_import(owner: User) -> None:
    values = {"owner": owner, "state": "failed", "ended_at": timezone.now()}
    FileImport.objects.create(collection=Collection.objects.get(), **values)


def open_page(page: Any, path: str) -> None:
    with page.expect_response("**/inbox/**"):
        page.goto(f"/c/books/{path}")


def ask(page: Any) -> None:
    """As if the ten seconds were over."""
    with page.expect_response("**/inbox/**"):
        page.evaluate(ASK)


@pytest.mark.parametrize("look", EACH_LOOK)
def test_what_ends_elsewhere_is_told_counted_and_listed(charlie, new_page, violations, look):
    page = new_page(user=charlie, **LOOKS[look])
    open_page(page, "pairs/")
    count = page.locator("#inbox-count")
    before = int(count.text_content().split()[0])
    assert page.title().startswith(f"({before}) Pairs")
    shifts = page.evaluate(SHIFTS)
    refuse_import(charlie)
    ask(page)
    page.get_by_text("Import 1 failed.").first.wait_for()
    assert page.title().startswith(f"({before + 1}) Pairs")
    assert violations(page) == [] and page.evaluate(SHIFTS) == shifts
    # With the keyboard: to the notice, and away with it; the focus goes back to where it was.
    link = page.locator("main a[href]").first
    link.focus()
    page.locator(".toast a").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.hasAttribute('data-dismiss')")
    page.keyboard.press("Enter")
    assert page.locator(".toast").count() == 0
    assert link.evaluate("element => element === document.activeElement")
    ask(page)
    assert page.locator(".toast").count() == 0, "it is told once"
    page.goto("/c/books/")
    page.locator("#ended li").wait_for()
    assert violations(page) == []
    page.get_by_role("button", name="Clear what has ended").click()
    page.wait_for_load_state()
    assert page.locator("#ended").count() == 0


def test_a_notice_goes_by_itself_but_not_while_somebody_is_at_it(charlie: User, new_page: Callable[..., Any]) -> None:
    page = new_page(user=charlie)
    page.clock.install()
    open_page(page, "pairs/")
    refuse_import(charlie)
    ask(page)
    page.locator(".toast").wait_for()
    page.locator(".toast a").focus()
    page.clock.run_for(25_000)
    assert page.locator(".toast").count() == 1
    page.locator("main a[href]").first.focus()
    page.clock.run_for(11_000)
    assert page.locator(".toast").count() == 0


def test_the_overview_follows_what_others_do_and_a_page_that_somebody_fills_in_is_not_left(charlie, new_page, console):
    books = Collection.objects.get()
    books.campaigns.update(state="finished")
    page = new_page(user=charlie)
    make_item(make_pair(books), state="conflict")
    open_page(page, "")
    page.get_by_text("1 pair waits for an adjudicator").wait_for()
    make_item(make_pair(books), state="conflict")
    ask(page)
    page.get_by_text("2 pairs wait for an adjudicator").wait_for()
    open_page(page, "settings/guidelines/")
    page.locator("textarea").first.fill("Half a sentence")
    page.context.clear_cookies()  # the session ends
    ask(page)
    page.locator("#inbox").wait_for(state="detached")
    assert page.locator("textarea").first.input_value() == "Half a sentence" and "guidelines" in page.url
    console.clear()
