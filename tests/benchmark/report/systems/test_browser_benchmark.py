"""The benchmark in a real Chromium: axe, light, dark, a phone; and from the upload of two runs to a filled report."""

import re
from typing import TYPE_CHECKING

import pytest

from annotation.models import Role
from benchmark.models import Filling, Report, Run
from corpus.models import Collection
from tests import benchmark_scene as scene
from tests.factories import make_member
from tests.looks import EACH_LOOK, LOOKS, SIDEWAYS
from tests.rankings import make_next_report

if TYPE_CHECKING:
    from playwright.sync_api import Page


pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
HOME = "/c/books/benchmark/"


def addresses(collection: Collection) -> dict[str, str]:
    """Every page of the benchmark, by a name for its picture."""
    report, filling = Report.objects.latest("pk"), Filling.objects.latest("pk")
    run = Run.objects.get(collection=collection, name="dense-large")
    queries, documents = scene.by_id(collection)
    query, document = queries["q3"].pk, documents["d3-1"].pk
    return {
        "home": HOME,
        "runs": f"{HOME}runs/",
        "make": f"{HOME}runs/make/",
        "hybrid": f"{HOME}runs/make/?type=hybrid",
        "delete": f"{HOME}runs/{run.pk}/delete/",
        "system": f"{HOME}runs/{run.pk}/",
        "compare": f"{HOME}compare/?a={run.pk}&b={Run.objects.get(collection=collection, name='bm25').pk}",
        "fillings": f"{HOME}hole-filling/",
        "filling": f"{HOME}hole-filling/{filling.number}/",
        "report": f"{HOME}report/{report.number}/",
        "queries": f"{HOME}queries/",
        "query": f"{HOME}queries/{query}/",
        "text": f"{HOME}queries/{query}/{document}/",
        "qrels": f"{HOME}qrels/",
        "diff": f"{HOME}qrels/diff/?one=1&other=2",
        "suites": "/suites/",
    }


def open_all(page: "Page") -> None:
    """What is folded away is looked at, too."""
    page.evaluate("document.querySelectorAll('main details').forEach((one) => { one.open = true; })")


@pytest.mark.slow
@pytest.mark.parametrize("look", EACH_LOOK)
def test_no_page_of_the_benchmark_has_a_violation(instance, new_page, violations, look):
    collection, charlie = scene.whole_scene()
    scene.make_run(collection, "late", scene.rankings(1)["reranked"])
    page = new_page(user=charlie.user, **LOOKS[look])
    make_member(scene.collection_of_books("empty"), "charlie", Role.ADMIN)
    parts = ("", "runs/", "compare/", "hole-filling/", "report/", "qrels/", "queries/")
    empty = {f"empty {part}": f"/c/empty/benchmark/{part}" for part in parts}
    found = {}
    for name, address in {**addresses(collection), **empty}.items():
        answer = page.goto(address)
        assert answer and answer.ok, address
        open_all(page)
        found[name] = violations(page) + (["scrolls sideways"] if page.evaluate(SIDEWAYS) else [])
    assert {name: problems for name, problems in found.items() if problems} == {}


@pytest.mark.slow
def test_two_runs_are_uploaded_ticked_and_compared_and_what_is_computed_comes_by_itself(
    instance, new_page, violations, tmp_path
):
    collection = scene.collection_of_books()
    ranked = scene.rankings()
    paths = [tmp_path / f"{name}.run" for name in ("bm25", "dense-large")]
    for path in paths:
        path.write_text(scene.trec(ranked[path.stem]))
    page = new_page(user=make_member(collection, "charlie", Role.ADMIN).user)
    page.goto("/c/books/")
    page.get_by_role("navigation").get_by_role("link", name="Benchmark").click()
    page.get_by_role("link", name="Add runs").click()
    page.set_input_files("input[type=file]", paths)
    page.get_by_role("button", name="Upload").click()
    page.get_by_text("2 runs imported").wait_for()
    page.get_by_role("link", name="Leaderboard").click()
    page.get_by_role("button", name="Compute").click()
    page.get_by_role("table").get_by_role("link", name="dense-large", exact=True).wait_for()
    for path in paths:
        page.get_by_role("checkbox", name=path.stem).check()
    page.get_by_role("button", name="Compare the two selected runs").click()
    page.get_by_role("img", name="Difference in nDCG@10 by query").wait_for()
    assert violations(page) == []

    page.get_by_role("link", name="Hole filling").click()
    page.get_by_role("button", name="Estimate").click()
    page.get_by_role("button", name="Start now").click()
    page.get_by_role("heading", name="Outcome of the pool").wait_for()
    assert f"{len(Filling.objects.get().pairs)} waiting for people" in page.inner_text("main")
    scene.judge_all(make_member(collection, "bob"))
    page.get_by_role("button", name="Create the qrels").wait_for()
    page.get_by_role("button", name="Create the qrels").click()
    page.get_by_text("holes were found").wait_for()
    page.get_by_role("button", name="Show the effect on rankings").click()
    page.get_by_role("heading", name="Computing").wait_for()
    assert make_next_report()
    page.get_by_role("heading", name="Results").wait_for()
    files = page.locator(".chart-files", has_text="LaTeX of the table nDCG@10")
    files.locator("summary").press("Enter")
    with page.expect_download() as saved:
        files.get_by_role("link", name="LaTeX").click()
    assert "dense-large &" in saved.value.path().read_text()
    assert violations(page) == []


def test_the_fields_of_a_run_change_with_its_type_and_keep_what_was_typed(instance, new_page):
    collection = scene.collection_of_books()
    scene.runs_of(collection)
    page = new_page(user=make_member(collection, "charlie", Role.ADMIN).user)
    page.goto(f"{HOME}runs/make/")
    page.get_by_label("Name").fill("mine")
    page.get_by_label("Type").focus()
    page.keyboard.press("h")  # to "hybrid", by keyboard alone
    page.get_by_label("Reranked run", exact=True).wait_for()
    assert page.get_by_label("Name").input_value() == "mine"
    assert page.url.endswith("type=hybrid&name=mine&depth=100")
    page.get_by_role("button", name="Create run").click()
    page.wait_for_url(re.compile(r"/runs/\d+/$"))
    assert Run.objects.get(name="mine").kind == "hybrid"
