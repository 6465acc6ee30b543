"""The People page in a real Chromium: three clicks to three invitations, no sideways scrolling, rows of 40 px."""

import pytest

from annotation.models import Invitation, Role
from tests.evidence import make_judgment
from tests.factories import make_collection, make_item, make_member, make_pair

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_three_people_are_invited_by_three_clicks_from_the_start_page(new_page, violations):
    birds = make_collection("birds", title="Birds")
    page = new_page(user=make_member(birds, "charlie", Role.ADMIN).user)
    page.goto("/")
    page.get_by_role("link", name="Birds").first.click()
    page.get_by_role("navigation").get_by_role("link", name="People").first.click()
    page.get_by_label("Names or email addresses").fill("Alice\nBob\nCarol")
    page.get_by_role("button", name="Invite", exact=True).click()
    page.get_by_role("button", name="Copy all").wait_for()
    links = page.locator("#all-links").input_value()
    assert [line.partition("\t")[0] for line in links.split("\n") if line] == ["Alice", "Bob", "Carol"]
    assert all(one.token in links for one in Invitation.objects.all()) and Invitation.objects.count() == 3
    assert violations(page) == []
    page.reload()
    assert Invitation.objects.count() == 3, "loading the page again invites nobody"


def test_the_table_fits_1280_pixels_in_rows_of_40(new_page, violations):
    birds = make_collection("birds")
    admin, alice = make_member(birds, "charlie", Role.ADMIN), make_member(birds, "a-rather-long-user-name-of-alice")
    bob = make_member(birds, "bob")
    for _ in range(25):
        item = make_item(make_pair(birds), overlap=2)
        make_judgment(item.pair, alice.assessor, 1, item=item)
        make_judgment(item.pair, bob.assessor, 0, item=item)
    for options in ({"viewport": {"width": 1280, "height": 800}}, {"viewport": {"width": 390, "height": 844}}):
        page = new_page(user=admin.user, **options)
        page.goto("/c/birds/members/")
        assert page.locator(".alerts a").count() == 2
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        assert page.evaluate("(box => box.scrollWidth - box.clientWidth)(document.querySelector('.table-scroll'))") <= 0
        assert violations(page) == []
        if options["viewport"]["width"] == 1280:
            heights = [row.bounding_box()["height"] for row in page.locator("table.members tbody tr").all()]
            assert max(heights) < 42, heights
