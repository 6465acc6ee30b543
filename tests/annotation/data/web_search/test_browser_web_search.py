"""The pages of web searches in a real Chromium: axe in light, dark and on a phone; a start by keyboard alone."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from annotation.data.web_search.searching import WEB_SEARCHES
from annotation.models import Role
from annotation.models.web_search import SearchedQuery, WebSearch, WebSearchResult
from jobs import leases
from tests.factories import make_collection, make_member, make_query
from tests.looks import EACH_LOOK, LOOKS, SIDEWAYS

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True), pytest.mark.slow]
HOME = "/c/ice/import/web/"


def work_off():
    """Work on the search that waits, as a worker would."""
    try:
        WEB_SEARCHES.perform(leases.claim(WebSearch))
    finally:
        connection.close()


@pytest.mark.parametrize("look", EACH_LOOK)
def test_a_web_search_is_started_by_keyboard_and_no_page_has_a_violation(new_page, violations, look):
    ice = make_collection("ice")
    for place, text in enumerate(("what does a mapping object map", "how is a class defined", "when does a loop end")):
        make_query(ice, text, external_id=f"q{place}")
    alice = make_member(ice, "alice", Role.ADMIN)
    page = new_page(user=alice.user, **LOOKS[look])
    page.set_default_timeout(30_000)
    found, wide = {}, []

    def look_at(name):
        found[name] = violations(page)
        if page.evaluate(SIDEWAYS):
            wide.append(name)

    page.goto(HOME)
    look_at("list")
    page.locator("#id_fetch").focus()
    page.keyboard.press("Space")
    page.locator("#id_limit").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Start now")
    look_at("estimate")
    page.get_by_role("button", name="Start now").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("text=This page updates automatically.")
    look_at("in progress")
    WebSearch.objects.update(options={"judge": "offline-web-search", "fetch": False, "limit": 20, "seed": 0})
    with ThreadPoolExecutor(1) as pool:  # the browser's loop runs in this thread
        pool.submit(work_off).result()
    searched = SearchedQuery.objects.order_by("place")[0]
    WebSearchResult.objects.filter(searched=searched, rank=2).update(
        document=None, problem='["robots", {"host": "ice.example"}]', url="http://ice.example/" + "long" * 60
    )
    SearchedQuery.objects.filter(pk=searched.pk).update(cached=True)
    page.wait_for_selector("h2:has-text('Results left out')")
    look_at("results")
    page.goto(HOME)
    look_at("list of one")
    assert found == {key: [] for key in found} and wide == []
