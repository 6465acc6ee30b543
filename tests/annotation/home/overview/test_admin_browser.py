"""The admin's Overview, menu, pairs and exports in a real browser (every page in every look: accounts/test_reach)."""

from typing import Any

import pytest

from annotation.models import User
from annotation.models.snapshots import Snapshot
from corpus.models import Collection, Label, Pair
from tests.admin_site import audited, judged_collection, people_at_work
from tests.looks import EACH_LOOK, LOOKS
from tests.stages import first_quick

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def charlie(instance: dict[str, str]) -> User:
    return people_at_work(judged_collection())["charlie"].user


def add_wrong_route() -> None:
    """Pairs with labels of a route that failed its audit."""
    campaign = audited(Collection.objects.get(), right=20, wrong=30)
    for pair in Pair.objects.filter(audits__campaign=campaign):
        Label.objects.create(pair=pair, grade=1, origin=campaign.policy)


def fits(page: Any) -> bool:
    """Nothing makes the page scroll sideways."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))


@pytest.mark.parametrize("look", EACH_LOOK)
def test_decisions_are_in_sight_at_once_and_their_buttons_lead_on(charlie, new_page, violations, look):
    add_wrong_route()
    page = new_page(user=charlie, **LOOKS[look])
    page.goto("/c/books/")
    for summary in page.locator(".story > section > details > summary, figure details > summary").all():
        summary.click()
    assert violations(page) == [] and fits(page)
    first = page.locator(".attention > li").first
    # Behind the four figures, which are two rows on a phone.
    assert first.bounding_box()["y"] < LOOKS[look]["viewport"]["height"] * (1 if look == "phone" else 0.55)
    bar = page.locator(".progress-bar")
    assert bar.bounding_box()["width"] > 300 and bar.bounding_box()["height"] <= 12
    assert len({rect.evaluate("e => getComputedStyle(e).fill") for rect in bar.locator("rect").all()}) == 4
    first.get_by_role("link", name="Review routes").click()
    page.wait_for_url(lambda address: not address.endswith("/c/books/"))


@pytest.mark.parametrize("width", first_quick([375, 800, 1280]))
def test_the_masthead_is_one_line_and_its_menu_needs_no_script(charlie, new_page, violations, width):
    Collection.objects.update(title="A collection whose title is longer than any masthead could ever hold in one line")
    page = new_page(user=charlie, viewport={"width": width, "height": 700}, java_script_enabled=False)
    page.goto("/c/books/")
    assert page.locator(".masthead").bounding_box()["height"] <= 52
    if width < 1024:
        assert page.get_by_role("link", name="Quality", exact=True).count() == 0
        page.get_by_role("button", name="Menu").click()
    page.get_by_role("link", name="Quality", exact=True).click()
    page.wait_for_url("**/c/books/quality/")
    scripted = new_page(user=charlie, viewport={"width": width, "height": 700})
    scripted.goto("/c/books/")
    if width < 1024:
        scripted.get_by_role("button", name="Menu").click()
    assert fits(scripted) and violations(scripted) == []
    if width >= 1024:
        scripted.goto("/c/books/quality/")
        scripted.evaluate("() => scrollTo(0, 600)")
        assert scripted.locator(".rail").bounding_box()["y"] == 0, "the rail stays in sight"


def test_filters_and_a_preview_come_into_the_page_which_keeps_what_was_chosen(charlie, new_page, violations):
    page = new_page(user=charlie)
    page.goto("/c/books/pairs/")
    assert page.locator("table.pairs tbody tr").count() == 18
    page.get_by_label("State").select_option("failed")
    page.wait_for_url("**state=failed**")
    page.wait_for_function("() => document.querySelectorAll('table.pairs tbody tr').length === 2")
    page.reload()
    assert page.locator("table.pairs tbody tr").count() == 2
    add_wrong_route()
    page.goto("/c/books/exports/")
    page.check("input[value=csv]")
    page.get_by_label("Leave out 50 pairs of routes that failed their label audit").check()
    page.get_by_role("button", name="Preview").press("Enter")
    page.locator("#preview pre").first.wait_for()
    assert "query_id,doc_id,grade,origin" in page.locator("#preview pre").inner_text()
    assert page.url.endswith("/c/books/exports/") and page.is_checked("input[value=csv]")
    assert violations(page) == [] and fits(page)
    assert not Snapshot.objects.exists() and Collection.objects.count() == 1
