"""The Overview and the exports page in a real browser: decisions in sight, a preview without leaving the page."""

from collections.abc import Callable
from typing import Any

import pytest

from annotation.models.snapshots import Snapshot
from corpus.models import Collection, Label, Pair
from tests.admin_site import audited, judged_collection, people_at_work
from tests.annotation.home.overview.test_admin_browser import fits
from tests.looks import EACH_LOOK, LOOKS

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def charlie(instance: dict[str, str]) -> Any:
    books = judged_collection()
    campaign = audited(books, right=20, wrong=30)
    for pair in Pair.objects.filter(audits__campaign=campaign):
        Label.objects.create(pair=pair, grade=1, origin=campaign.policy)
    return people_at_work(books)["charlie"].user


@pytest.mark.parametrize("look", EACH_LOOK)
def test_decisions_are_in_sight_at_once_and_their_buttons_lead_on(
    charlie: Any, new_page: Callable[..., Any], violations: Callable[[Any], list[str]], look: str
) -> None:
    page = new_page(user=charlie, **LOOKS[look])
    page.goto("/c/books/")
    assert violations(page) == [] and fits(page)
    first = page.locator(".attention > li").first
    # Behind the four figures, which are two rows on a phone.
    assert first.bounding_box()["y"] < LOOKS[look]["viewport"]["height"] * (1 if look == "phone" else 0.55)
    bar = page.locator(".progress-bar")
    assert bar.bounding_box()["width"] > 300 and bar.bounding_box()["height"] <= 12
    assert len({rect.evaluate("e => getComputedStyle(e).fill") for rect in bar.locator("rect").all()}) == 4
    first.get_by_role("link", name="Review routes").click()
    page.wait_for_url(lambda address: not address.endswith("/c/books/"))


def test_a_preview_comes_into_the_page_and_keeps_what_was_chosen(
    charlie: Any, new_page: Callable[..., Any], violations: Callable[[Any], list[str]]
) -> None:
    page = new_page(user=charlie, viewport={"width": 1280, "height": 900})
    page.goto("/c/books/exports/")
    page.check("input[value=csv]")
    page.get_by_label("Leave out 50 pairs of routes that failed their label audit").check()
    page.get_by_role("button", name="Preview").press("Enter")
    page.locator("#preview pre").first.wait_for()
    assert "query_id,doc_id,grade,origin" in page.locator("#preview pre").inner_text()
    assert page.url.endswith("/c/books/exports/") and page.is_checked("input[value=csv]")
    assert violations(page) == [] and fits(page)
    assert not Snapshot.objects.exists() and Collection.objects.count() == 1
