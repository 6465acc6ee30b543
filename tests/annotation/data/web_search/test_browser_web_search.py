"""The results of a web search on a phone in a real Chromium: a long address and a reason do not widen the page."""

import pytest

from annotation.models import Role
from annotation.models.web_search import WebSearchResult
from tests.factories import make_collection, make_member, make_pair
from tests.looks import LOOKS, SIDEWAYS
from tests.site.test_permissions import web_search_of

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True), pytest.mark.slow]


def test_long_addresses_and_results_left_out_fit_a_phone_and_have_no_violation(new_page, violations, instance):
    ice = make_collection("ice")
    search = web_search_of(make_pair(ice))
    address, problem = "http://ice.example/" + "long" * 60, '["robots", {"host": "ice.example"}]'
    WebSearchResult.objects.update(document=None, problem=problem, url=address)
    page = new_page(user=make_member(ice, "alice", Role.ADMIN).user, **LOOKS["phone"])
    page.goto(f"/c/ice/import/web/{search.number}/")
    page.wait_for_selector("h2:has-text('Results left out')")
    assert violations(page) == [] and not page.evaluate(SIDEWAYS)
