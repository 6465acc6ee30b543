"""Search endpoints in a real Chromium: added, tested and deleted; axe in light, dark and on a phone, at 320 px too."""

import pytest

from benchmark.models import SearchEndpoint
from tests.benchmark.search_endpoints.conftest import KEY
from tests.factories import make_endpoint, make_user
from tests.looks import EACH_LOOK, LOOKS, SIDEWAYS
from tests.plugin_browser import site

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.mark.parametrize("look", EACH_LOOK)
def test_an_engine_is_added_tested_and_deleted(
    new_page, violations, clicks, instance_environment, engine, look, console
):
    olga = make_user("olga", is_owner=True)
    found: dict[str, list[str]] = {}
    environment = {**instance_environment, "QUORUM_SEARCH_HOSTS": f"127.0.0.1:{engine.port}", "SHOP_AUTH": KEY}
    engine.plan("nothing", {"items": []})
    with site(environment) as address:
        page = clicks(new_page(user=olga, **LOOKS[look]))

        def look_at(name: str) -> None:
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
        fields = {
            "name": "shop", "base_url": engine.address, "path": "/search", "body": '{"q": "{{query}}", "n": {{k}}}',
            "hits": "results[]", "id": "id", "title": "name", "text": "name\ndescription",
            "header_env": "Authorization = SHOP_AUTH",
        }  # fmt: skip
        for name, value in fields.items():
            page.locator(f"#id_{name}").fill(value)
        page.get_by_role("button", name="Add endpoint").click()
        page.locator("#id_query").fill("warm boots")
        page.get_by_role("button", name="Send query").click()
        assert "Boot 5" in page.locator("#hits").inner_text()
        assert KEY not in page.content()
        assert clicks.of(page) <= 3
        look_at("hits")
        page.locator("#id_query").fill("nothing")
        page.get_by_role("button", name="Send query").click()
        assert "hits" in page.locator("#failure").inner_text()
        look_at("failure")
        make_endpoint("another")
        page.goto(f"{address}/search-endpoints/")
        look_at("list")
        page.get_by_role("link", name="shop").click()
        page.get_by_role("link", name="Delete endpoint").click()
        look_at("delete")
        page.get_by_role("button", name="Delete endpoint").click()
        assert not SearchEndpoint.objects.filter(name="shop", is_deleted=False).exists()
    console.clear()  # The failed test's status 422.
    assert {name: problems for name, problems in found.items() if problems} == {}
