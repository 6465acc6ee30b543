"""From the start page to kappa, and to the pairs behind a low one, counted in real clicks."""

import pytest

from annotation.models import Role
from tests.annotation.quality.label_quality.test_quality_page import books as judged_books
from tests.factories import make_member

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

books = judged_books


def test_kappa_is_one_click_from_the_start_page_and_the_pairs_behind_a_low_one_two(books, new_page, clicks, instance):
    charlie = make_member(books, "charlie", Role.ADMIN).user
    page = clicks(new_page(user=charlie))
    page.goto("/c/books/")
    page.get_by_role("link", name="Quality", exact=True).click()
    page.wait_for_url("**/quality/**")
    assert "kappa" in page.locator("#agreement").inner_text().lower()
    assert page.locator(".matrix").count() == 1 and clicks.of(page) == 1
    page.locator("#agreement a[href*='cell=disagree']").first.click()
    page.wait_for_url("**/agreement/two/**")
    assert page.locator("main tbody tr").count() > 0 and clicks.of(page) == 2

    page = new_page(user=charlie, viewport={"width": 390, "height": 844}, locale="zh-CN")
    page.goto("/c/books/quality/")
    names = page.locator(".table-scroll > .table tbody th[scope=row]")
    widths = names.evaluate_all("all => all.map(one => one.offsetWidth)")
    assert widths and min(widths) >= 90, "a Chinese phone sets no name one character a line"
