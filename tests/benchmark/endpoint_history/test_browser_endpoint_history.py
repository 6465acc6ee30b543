"""From a collection of queries alone to its first judgments, in a real browser: your search, its page, two clicks."""

from typing import TYPE_CHECKING

import pytest

from annotation.models import Role
from benchmark.models import Run
from benchmark.qrels import versions
from corpus.models import Item, Label, Pair
from tests.factories import make_collection, make_endpoint, make_member, make_query
from tests.looks import EACH_LOOK, LOOKS, SIDEWAYS
from tests.rankings import work_on
from tests.shop_search import shop_search

if TYPE_CHECKING:
    pass

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
HERE = "/c/shop/benchmark/"


@pytest.mark.slow
@pytest.mark.parametrize("look", EACH_LOOK)
def test_from_queries_alone_to_what_is_new(instance, new_page, violations, settings, look):
    collection = make_collection("shop")
    for name, text in (("q1", "red shoes"), ("q2", "rain coat")):
        make_query(collection, text, external_id=name)
    page = new_page(user=make_member(collection, "charlie", Role.ADMIN).user, **LOOKS[look])

    def check():
        assert violations(page) == [] and not page.evaluate(SIDEWAYS), page.url

    def make_run():
        page.locator("#make form button.primary").click()
        page.wait_for_url("**/runs/*/")
        return work_on(Run.objects.latest("pk"))

    page.goto(f"{HERE}runs/make/?type=search")
    assert page.locator("#lacks").is_visible() and page.locator("main button.primary").is_disabled()
    with shop_search() as engine:
        settings.SEARCH_HOSTS = frozenset({f"127.0.0.1:{engine.port}"})
        make_endpoint(**engine.settings)
        page.goto(f"{HERE}runs/make/")
        assert page.input_value("#type") == "search", "no other system has documents to rank"
        page.fill("#id_depth", "3")
        check()
        first = make_run()
        page.goto(f"{HERE}search/shop/")
        check()
        page.locator("form:has([name=runs]) [name=policy]").select_option("people")
        page.locator("form:has([name=runs]) button.primary").click()
        check()
        page.locator("[name=confirm]").click()
        page.wait_for_url("**/hole-filling/*/")
        assert Item.objects.filter(collection=collection).count() == 6
        page.goto(f"{HERE}search/shop/")
        page.locator("header a[href*='type=search']").click()
        assert make_run().name == f"{first.name}-2"
    Label.objects.bulk_create(Label(pair=pair, grade=1, origin="people") for pair in Pair.objects.all())
    versions.labels_version(collection)
    page.goto(f"{HERE}search/shop/")
    page.locator("form:has([name=endpoint]) button").click()
    page.wait_for_url("**/search/shop/")
    assert page.locator("#compare-h").is_visible() and page.locator("figure.chart").count() == 1
    page.evaluate("document.querySelectorAll('main details').forEach((one) => { one.open = true; })")
    check()
