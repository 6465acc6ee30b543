"""The ledger and the caps in a real browser: accessible, within the window, in light, dark and on a phone."""

from collections.abc import Callable
from typing import Any

import pytest

from annotation.models import Role, User
from corpus.models import Collection
from judges.costs.price_rows import enter_price
from judges.models import Campaign, JudgeVersion
from tests.factories import make_member
from tests.looks import LOOKS
from tests.money_scene import audits, judged_books

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def charlie(instance: dict[str, str]) -> User:
    books = judged_books()
    audits(Campaign.objects.get(), 1, 1)
    return make_member(books, "charlie", Role.ADMIN).user


def test_the_pages_of_money_are_accessible_and_fit(charlie, new_page, violations):
    ledger = f"/c/books/campaigns/{Campaign.objects.get().number}/ledger/"
    enter_price(
        provider="openai-compatible", model="m", prices={"input_price": 0.5, "output_price": 2.0}, source="page"
    )
    price = f"/c/books/prices/{JudgeVersion.objects.get(name='one').pk}/"
    pages = {"ledger": ledger, "settings": "/c/books/settings/", "home": "/c/books/", "prices": "/c/books/prices/"}
    found = {}
    for look, window in LOOKS.items():
        page = new_page(user=charlie, **window)
        for name, address in {**pages, "price": price}.items():
            page.goto(address)
            wide = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
            if told := [*violations(page), *(["wider than the window"] if wide else [])]:
                found[name, look] = told
    assert found == {}


def test_an_admin_raises_a_cap_and_finds_what_is_left(charlie: User, new_page: Callable[..., Any]) -> None:
    page = new_page(user=charlie)
    page.goto("/c/books/campaigns/")
    page.get_by_role("link", name="raise the budget").click()
    page.get_by_label("Daily budget (USD)").fill("4")
    page.get_by_role("button", name="Save budget").click()
    page.get_by_text("Saved. Applies from now on.").wait_for()
    assert Collection.objects.get().daily_budget == 4.0
    page.get_by_role("link", name="Judging").first.click()
    page.get_by_role("link", name="ledger of campaign").first.click()
    page.get_by_text("$3.00 of $4.00 for today").first.wait_for()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download ledger (CSV)").click()
    assert download.value.suggested_filename.endswith("-ledger.csv")
