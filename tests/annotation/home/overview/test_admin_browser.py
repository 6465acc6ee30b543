"""The admin pages in a real browser: accessible, without console errors, in light, dark and on a phone (check 17)."""

from collections.abc import Callable
from typing import Any

import pytest

from annotation.models import User
from corpus.models import Collection
from judges.panels.offline_panel import ensure_offline
from tests.admin_site import audited, judged_collection, people_at_work
from tests.factories import make_user
from tests.looks import EACH_LOOK, LOOKS
from tests.stages import first_quick

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def books(instance: dict[str, str]) -> dict[str, User]:
    people = {name: member.user for name, member in people_at_work(judged_collection()).items()}
    ensure_offline()
    return {**people, "olga": make_user("olga", is_owner=True)}


def fits(page: Any) -> bool:
    """Nothing makes the page scroll sideways."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))


PAGES = ["", "pairs/", "PAIR", "members/", "campaigns/", "settings/", "settings/guidelines/", "exports/", "statistics/",
         "policies/", "canaries/", "agreement/two/?a=books-judge-1&b=books-judge-2", "quality/",
         "quality/over-time/"]  # fmt: skip


@pytest.mark.parametrize("look", EACH_LOOK)
def test_admin_pages_are_accessible_and_fit(
    books: dict[str, User], new_page: Callable[..., Any], violations: Callable[[Any], list[str]], look: str
) -> None:
    audited(Collection.objects.get(), right=38, wrong=2)
    page = new_page(user=books["charlie"], **LOOKS[look])
    found = {}
    for part in PAGES:
        if part == "PAIR":
            page.goto("/c/books/pairs/?state=labelled")
            page.goto(page.locator("table.pairs tbody th a").first.get_attribute("href"))
            page.locator("details.attempt summary").first.click()
        else:
            page.goto(f"/c/books/{part}")
        for summary in page.locator(".story > section > details > summary, figure details > summary").all():
            summary.click()
        found[part] = violations(page) + ([] if fits(page) else ["scrolls sideways"])
    assert {part: problems for part, problems in found.items() if problems} == {}


@pytest.mark.parametrize("width", first_quick([375, 800, 1280]))
def test_the_masthead_is_one_line_and_its_menu_needs_no_script(
    books: dict[str, User], new_page: Callable[..., Any], violations: Callable[[Any], list[str]], width: int
) -> None:
    Collection.objects.update(title="A collection whose title is longer than any masthead could ever hold in one line")
    page = new_page(user=books["charlie"], viewport={"width": width, "height": 700}, java_script_enabled=False)
    page.goto("/c/books/")
    assert page.locator(".masthead").bounding_box()["height"] <= 52
    if width < 1024:
        assert page.get_by_role("link", name="Quality", exact=True).count() == 0
        page.get_by_role("button", name="Menu").click()
    page.get_by_role("link", name="Quality", exact=True).click()
    page.wait_for_url("**/c/books/quality/")
    scripted = new_page(user=books["charlie"], viewport={"width": width, "height": 700})
    scripted.goto("/c/books/")
    if width < 1024:
        scripted.get_by_role("button", name="Menu").click()
    assert fits(scripted)
    assert violations(scripted) == []
    if width >= 1024:
        scripted.goto("/c/books/quality/")
        scripted.evaluate("() => scrollTo(0, 600)")
        assert scripted.locator(".rail").bounding_box()["y"] == 0, "the rail stays in sight"


def test_an_invitation_link_is_copied_and_lets_somebody_in(
    books: dict[str, User], new_page: Callable[..., Any], violations: Callable[[Any], list[str]]
) -> None:
    page = new_page(user=books["charlie"])
    page.goto("/c/books/members/")
    page.get_by_label("Names or email addresses").fill("Dana")
    page.get_by_role("button", name="Invite", exact=True).click()
    link = page.get_by_label("Invitation link for Dana").input_value()
    assert page.get_by_role("button", name="Copy link").is_visible()
    guest = new_page()
    guest.goto(link)
    assert violations(guest) == []
    guest.get_by_label("Username").fill("dana")
    guest.get_by_label("Password", exact=True).fill("a long enough secret")
    guest.get_by_label("Password confirmation").fill("a long enough secret")
    guest.get_by_role("button", name="Create account and join").click()
    guest.wait_for_url("**/c/books/judge/**")


def test_filters_change_the_list_and_the_address_without_leaving_the_page(
    books: dict[str, User], new_page: Callable[..., Any]
) -> None:
    page = new_page(user=books["charlie"])
    page.goto("/c/books/pairs/")
    assert page.locator("table.pairs tbody tr").count() == 18
    page.get_by_label("State").select_option("failed")
    page.wait_for_url("**state=failed**")
    page.wait_for_function("() => document.querySelectorAll('table.pairs tbody tr').length === 2")
    page.reload()
    assert page.locator("table.pairs tbody tr").count() == 2
