"""The Lab in a real Chromium: an admin switches it on, finds its pages as cards, and no look has a violation."""

import pytest

from annotation.models import Role
from corpus.models import Collection
from tests.factories import make_collection, make_member
from tests.looks import LOOKS

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_an_admin_switches_the_lab_on_and_opens_a_page_by_its_card(new_page, instance, violations):
    books = make_collection("books", title="Python's reference")
    admin = make_member(books, "ada", Role.ADMIN).user
    page = new_page(user=admin)
    page.goto("/c/books/")
    menu = page.get_by_role("navigation", name="Python's reference")
    assert menu.get_by_role("link", name="Lab").count() == 0
    page.goto("/c/books/lab/")
    page.get_by_role("heading", name="The Lab is off").wait_for()
    page.get_by_role("main").get_by_role("link", name="Settings").click()
    page.get_by_label("Lab").select_option(label="On")
    page.get_by_role("button", name="Save settings").click()
    page.get_by_text("Settings saved.").wait_for()
    assert Collection.objects.get().lab
    menu.get_by_role("link", name="Lab").click()
    page.get_by_role("link", name="Panel study").click()
    page.get_by_role("heading", name="Panel study", level=1).wait_for()
    tabs = page.get_by_role("navigation", name="Pages in this section").get_by_role("link")
    assert tabs.all_inner_texts() == ["Lab", "Policy comparison", "Panel study", "Canaries"]
    for look in LOOKS.values():
        for width in (390, 1280):
            page = new_page(user=admin, **look)
            page.set_viewport_size({"width": width, "height": 900})
            page.goto("/c/books/lab/")
            assert violations(page) == []
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert page.evaluate(
                "[...document.querySelectorAll('.card.link')].every((card) => card.scrollWidth <= card.clientWidth)"
            )
