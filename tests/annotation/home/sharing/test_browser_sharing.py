"""Sharing in a real browser: an admin makes a link, somebody without an account reads it, the admin revokes it."""

import pytest

from tests.admin_site import judged_collection, people_at_work
from tests.annotation.people.accounts.test_reach import OVERFLOW
from tests.looks import EACH_LOOK, LOOKS

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("look", EACH_LOOK)
def test_a_page_is_shared_read_and_revoked(instance, new_page, violations, console, look):
    charlie = people_at_work(judged_collection())["charlie"]
    admin = new_page(user=charlie.user, **LOOKS[look])
    admin.goto("/c/books/")
    admin.get_by_role("link", name="Share", exact=True).click()
    admin.get_by_label("Title").fill("For the board")
    admin.get_by_label("Valid for").select_option("7")
    admin.get_by_role("button", name="Create link").click()
    address = admin.get_by_label("New shared link").input_value()
    assert violations(admin) == [] and admin.evaluate(OVERFLOW) == []

    reader = new_page(**LOOKS[look])
    reader.goto(address)
    assert reader.get_by_role("heading", level=1).inner_text() == "For the board"
    for details in reader.locator("details > summary").all():
        details.click()
    assert violations(reader) == [] and reader.evaluate(OVERFLOW) == []
    for _ in range(40):
        reader.keyboard.press("Tab")
    assert reader.url == address

    admin.goto("/c/books/share/")
    row = admin.get_by_role("row", name="For the board")
    assert "1" in row.inner_text()
    row.get_by_text("Revoke", exact=False).first.click()
    admin.get_by_role("button", name="Revoke link").click()
    admin.get_by_text("Link revoked.").wait_for()
    assert reader.goto(address).status == 404
    assert violations(reader) == []
    console.clear()  # 404
