"""The way of a search team in a real browser, by at most 25 clicks; `QUORUM_PICTURES` gets the pictures of its page."""

import csv
import itertools
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmark.models import Filling, Gate, Run
from config.env import ROOT
from corpus.models import Collection, Document, Label, Query
from jobs.processes import spawn_child, stop_children
from jobs.workers import live_workers
from judges.workers import worker_pool
from tests.charts.test_pictures import LIGHT, folder, picture
from tests.engine_parts import FAST, make_panel
from tests.factories import make_user
from tests.instances import until
from tests.plugin_browser import site
from tests.shop_search import ShopSearch, product, shop_search

if TYPE_CHECKING:
    from playwright.sync_api import Page

__all__ = ["folder"]

pytestmark = [pytest.mark.browser, pytest.mark.weekly, pytest.mark.django_db(transaction=True)]
MOST_CLICKS, SAMPLE, DEPTH = 25, 200, 20
IN_STOCK = "In stock in all sizes."
COLOURS = ("red", "blue", "green", "black", "white", "grey", "brown", "yellow", "purple", "orange")
KINDS = ("warm", "light", "waterproof", "cheap", "small", "large", "soft", "short", "long", "wide")
CLOTHES = ("boots", "shoes", "coat", "jacket", "scarf", "hat", "gloves", "socks", "shirt", "belt")
BUYERS = ("men", "women", "children", "runners", "cyclists", "hikers", "sailors", "climbers", "skiers", "riders")


def write_log(path: Path) -> list[str]:
    """A log of 10,000 lines, whose first queries are asked most; return its queries."""
    each = itertools.product(COLOURS, CLOTHES, KINDS, BUYERS)
    queries = [f"{kind} {colour} {clothes} for {buyers}" for colour, clothes, kind, buyers in each]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("query", "count"))
        writer.writerows((query, 1 + len(queries) // place) for place, query in enumerate(queries, 1))
    return queries


def stock(engine: ShopSearch, queries: list[str], ranks: int) -> None:
    """Have the engine find twenty products for each query, what is in stock at ranks 1 to `ranks` by turns."""
    for number, query in enumerate(queries):
        first = DEPTH * number
        hits = [product(first + place, "Sold out.") for place in range(1, DEPTH)]
        hits.insert(number % ranks, product(first, IN_STOCK))
        engine.answers[query] = [
            hit | {"name": f"{query.capitalize()}, model {hit['id']}", "score": DEPTH - place}
            for place, hit in enumerate(hits)
        ]


def add_endpoint(page: "Page", name: str, engine: ShopSearch) -> None:
    """From the list of endpoints: two clicks."""
    page.get_by_role("link", name="HTTP with JSON").click()
    for field, value in {"name": name, **engine.settings}.items():
        if field == "method":
            page.locator("#id_method").select_option(value)
        elif field != "kind":
            page.locator(f"#id_{field}").fill("\n".join(value) if isinstance(value, list) else value)
    page.get_by_role("button", name="Add endpoint").click()


def make_run(page: "Page", endpoint: str) -> None:
    """From the form of a run by a search: one click."""
    page.locator("#id_endpoint").select_option(endpoint)
    page.locator("#id_depth").fill(str(DEPTH))
    page.locator("#make form button.primary").click()
    page.wait_for_url("**/runs/*/")


def test_from_an_engines_address_to_a_gate_in_a_browser(
    instance_environment, instance, model_server, new_page, clicks, tmp_path, folder
):
    make_panel(model_server, votes=("yes",) * 3)
    model_server.script({"*": [{"contains": IN_STOCK, "verdict": "yes"}, {"verdict": "no"}]})
    queries = write_log(tmp_path / "log.csv")
    with ExitStack() as running:
        engine, candidate = running.enter_context(shop_search()), running.enter_context(shop_search())
        stock(engine, queries, ranks=2)
        stock(candidate, queries, ranks=5)
        hosts = {"QUORUM_SEARCH_HOSTS": f"127.0.0.1:{engine.port},127.0.0.1:{candidate.port}"}
        address = running.enter_context(site({**instance_environment, **hosts}))
        worker = spawn_child(
            worker_pool.worker_command(2, "shop"), {**instance, **FAST, **hosts}, cwd=ROOT, stderr=subprocess.DEVNULL
        )
        running.callback(stop_children, [worker])
        until(lambda: bool(live_workers()))
        began = time.monotonic()
        page = clicks(new_page(user=make_user("olga", is_owner=True), **LIGHT))
        page.goto(address)
        page.get_by_role("link", name="Search endpoints").click()
        add_endpoint(page, "shop", engine)
        page.locator("#id_query").fill(queries[0])
        page.get_by_role("button", name="Send query").click()
        assert IN_STOCK in page.locator("#hits").inner_text()
        picture(page, "search-1-test", folder)
        page.get_by_role("link", name="Search endpoints").first.click()
        add_endpoint(page, "candidate", candidate)

        page.get_by_role("link", name="Collections").first.click()
        page.get_by_role("link", name="New collection").click()
        page.get_by_label("Title", exact=True).fill("Shop")
        page.get_by_role("button", name="Create from a query log").click()
        page.locator("[name=log]").set_input_files(tmp_path / "log.csv")
        page.locator("#id_sample").fill(str(SAMPLE))
        page.locator("#id_by").select_option("pptss")
        page.get_by_role("button", name="Import").click()
        page.locator("#id_endpoint").wait_for()
        assert (Query.objects.count(), Collection.objects.get().name) == (SAMPLE, "shop")
        make_run(page, "shop")
        until(lambda: Run.objects.get().state == "ready")
        page.get_by_role("link", name="Judge what is new").wait_for()
        page.get_by_role("link", name="Judge what is new").click()
        page.locator("[name=policy]").first.select_option("ensemble")
        picture(page, "search-2-new", folder, high=640)
        page.get_by_role("button", name="Estimate").click()
        page.get_by_role("button", name="Start now").click()
        page.wait_for_url("**/hole-filling/*/")
        until(lambda: Filling.objects.get().state == "filled", seconds=900)
        assert Label.objects.filter(grade=1).count() == SAMPLE
        page.reload()
        page.get_by_role("link", name="Runs", exact=True).click()
        page.get_by_role("link", name="Create a run").click()
        page.locator("#type").select_option("search")
        make_run(page, "candidate")
        until(lambda: Run.objects.filter(state="ready").count() == 2)
        assert Document.objects.count() == SAMPLE * DEPTH
        page.get_by_role("link", name="Leaderboard").first.click()
        page.get_by_role("button", name="Compute").click()
        page.locator("#board table").first.wait_for()
        picture(page, "search-3-leaderboard", folder, high=860)
        page.get_by_role("link", name="Gate").first.click()
        page.get_by_role("button", name="Compare").click()
        page.wait_for_url("**/gate/*/")
        assert Gate.objects.get().verdict == "fail"
        picture(page, "search-4-gate", folder, high=1000)
        page.get_by_role("link", name="Train & export").click()
        page.locator("[name=format][value=srw]").check(force=True)
        page.get_by_role("button", name="Create export").click()
        link = page.get_by_role("link", name="judgments.json").first
        link.wait_for()
        counted, seconds = clicks.of(page), time.monotonic() - began
        print(f"\n{counted} clicks, {seconds:.0f} s")
        body = page.request.get(f"{address}{link.get_attribute('href')}").json()
        assert len(body["judgmentRatings"]) == SAMPLE
    assert counted <= MOST_CLICKS
