"""A query log in a real Chromium: from the Import page to its queries, and a leaderboard weighted by its counts."""

from pathlib import Path

import pytest

from annotation.models import Role
from corpus.models import Query
from tests.benchmark.report.test_reports import World
from tests.factories import make_collection, make_member
from tests.plugin_browser import NewPage

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("width", [320, 1280])
def test_a_log_is_sampled_in_four_steps(
    new_page: NewPage, tmp_path: Path, violations, console: list[str], width: int
) -> None:
    page = new_page(
        user=make_member(make_collection("shop"), "charlie", Role.ADMIN).user, viewport={"width": width, "height": 800}
    )
    log = tmp_path / "log.csv"
    log.write_text("query,count\n" + "".join(f"query {n},{100 - n}\n" for n in range(50)))
    page.goto("/c/shop/import/")
    page.get_by_role("link", name="Query log").click()
    page.get_by_label("File").set_input_files(log)
    page.get_by_label("Queries to draw").fill("99")
    page.get_by_role("button", name="Import", exact=True).click()
    page.locator(".errorlist").wait_for()  # more than there are
    console.clear()  # Chromium notes the 422.
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert violations(page) == []
    page.get_by_label("File").set_input_files(log)
    page.get_by_label("Queries to draw").fill("10")
    page.get_by_label("Drawn by").select_option("pptss")
    page.get_by_role("button", name="Import", exact=True).click()
    page.wait_for_url("**/benchmark/runs/make/**")
    assert Query.objects.count() == 10


@pytest.mark.parametrize("width", [320, 1280])
def test_the_leaderboard_changes_its_weights(new_page: NewPage, violations, width: int) -> None:
    world = World()
    for query, count in zip(world.queries, (3, 1), strict=True):
        Query.objects.filter(pk=query.pk).update(metadata={"count": count})
    name = world.collection.name
    page = new_page(
        user=make_member(world.collection, "charlie", Role.ADMIN).user, viewport={"width": width, "height": 800}
    )
    page.goto(f"/c/{name}/benchmark/")
    page.get_by_role("navigation", name="Means over queries").get_by_role("link").nth(1).click()
    page.get_by_role("button", name="Compute").click()
    page.get_by_text("nDCG@10 (weighted)").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert violations(page) == []
