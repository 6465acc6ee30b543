"""Search endpoints in a real Chromium: added, tested and deleted; axe in light, dark and on a phone, at 320 px too."""

import pytest

from benchmark.models import SearchEndpoint
from tests.benchmark.search_endpoints.conftest import KEY
from tests.factories import make_endpoint, make_user
from tests.looks import EACH_LOOK, LOOKS, SIDEWAYS
from tests.plugin_browser import site

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.mark.parametrize("look", EACH_LOOK)
def test_an_engine_is_tested_and_deleted_and_no_page_has_a_violation(
    new_page, violations, instance_environment, engine, shop, look, console
):
    """How one is added by a browser: test_browser_address_to_gate.py."""
    found = {}
    environment = {**instance_environment, "QUORUM_SEARCH_HOSTS": f"127.0.0.1:{engine.port}", "SHOP_AUTH": KEY}
    engine.plan("nothing", {"items": []})
    with site(environment) as address:
        page = new_page(user=make_user("olga", is_owner=True), **LOOKS[look])

        def look_at(name):
            page.evaluate("document.querySelectorAll('main details').forEach(part => { part.open = true })")
            found[name] = violations(page) + (["wide"] if page.evaluate(SIDEWAYS) else [])
            size = page.viewport_size
            page.set_viewport_size({"width": 320, "height": 700})
            found[name] += ["wide at 320"] if page.evaluate(SIDEWAYS) else []
            page.set_viewport_size(size)

        page.goto(f"{address}/search-endpoints/")
        look_at("empty")
        page.get_by_role("link", name="HTTP with JSON").click()
        look_at("form")
        for name in ("shop", "another"):
            make_endpoint(**{**shop, "name": name})
        page.goto(f"{address}/search-endpoints/")
        look_at("list")
        page.get_by_role("link", name="shop").click()
        for query, part, words in (("warm boots", "#hits", "Boot 5"), ("nothing", "#failure", "hits")):
            page.locator("#id_query").fill(query)
            page.get_by_role("button", name="Send query").click()
            assert words in page.locator(part).inner_text() and KEY not in page.content()
            look_at(part)
        page.get_by_role("link", name="Delete endpoint").click()
        look_at("delete")
        page.get_by_role("button", name="Delete endpoint").click()
        assert not SearchEndpoint.objects.filter(name="shop", is_deleted=False).exists()
    console.clear()  # The failed test's status 422.
    assert {name: problems for name, problems in found.items() if problems} == {}
