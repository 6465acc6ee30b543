"""Policies compared in a real Chromium: the way from a ticked cell to what it comes to and to its pairs."""

import pytest

from annotation.models import Role
from tests.annotation.policies.policies_scene import scripted_campaign
from tests.factories import make_member

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_ticked_cell_goes_to_people_and_a_number_opens_its_pairs(new_page, instance):
    page = new_page(user=make_member(scripted_campaign().collection, "charlie", Role.ADMIN).user)
    page.goto("/c/books/policies/")
    page.get_by_label("Send to people: agreed in round 1: relevant, 3 votes yes, 2 no").check()
    page.get_by_label("Seconds per judgment").fill("60")
    page.get_by_role("button", name="Calculate").click()
    page.get_by_text("4 of 10 pairs").wait_for()
    assert "$4.80" in page.get_by_role("status", name="Expected result").inner_text()
    page.get_by_role("link", name="agreed in round 1: relevant, 3 votes yes, 2 no: 1").click()
    page.get_by_text("1 pair · states of campaign").wait_for()
