"""Makes the README's pictures, and holds them to their size: `QUORUM_PICTURES=docs/screenshots pytest --weekly=all`."""

import json
import os
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from annotation.models import Role
from annotation.quality.label_errors import suspects
from benchmark.models import Synthesis, SyntheticBundle
from benchmark.qrels import versions
from benchmark.report import reports
from corpus.models import Collection, Query
from judges.panels.offline_panel import ensure_offline
from tests import benchmark_scene as scene
from tests.annotation.people.accounts.test_reach import GOLDEN
from tests.aspect_reviews import accept_all, decide_all
from tests.aspects_scene import ice_scene
from tests.benchmark.agents.scripted import wings, with_aspects
from tests.benchmark.agents.test_agent_pages import graded, traced
from tests.benchmark.answers.scene import begin
from tests.benchmark.answers.test_browser_answers import OFFLINE, answer_all
from tests.factories import make_collection, make_member
from tests.judging_scene import make_scene
from tests.large_site import analyse, large_site
from tests.plugin_browser import NewPage

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.weekly, pytest.mark.django_db(transaction=True)]
MOST_BYTES = 240_000
LIGHT = {"viewport": {"width": 1280, "height": 860}, "color_scheme": "light", "reduced_motion": "reduce"}
DARK = {**LIGHT, "color_scheme": "dark"}
PHONE = {**LIGHT, "viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def picture(page: "Page", name: str, folder: Path, address: str = "", *, high: int | None = None) -> None:
    """The top of the page, `high` px of it where more than the window is wanted."""
    if address:
        page.goto(address)
    if high is not None:
        page.set_viewport_size({"width": page.viewport_size["width"], "height": high})
    path = folder / f"{name}.png"
    page.screenshot(path=path)
    if find_spec("PIL"):  # It comes with the packages for training; 256 colours are a third of the bytes.
        import_module("PIL.Image").open(path).convert("RGB").quantize(256, dither=0).save(path, optimize=True)
    assert path.stat().st_size <= MOST_BYTES, f"{name}: {path.stat().st_size:,} bytes"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(os.environ.get("QUORUM_PICTURES", tmp_path))


def test_pictures_of_the_desk(instance: dict[str, str], new_page: NewPage, folder: Path) -> None:
    collection = make_collection(
        "books", title="Python's reference", instruction="A passage is relevant when it answers the question."
    )
    make_scene(collection, 6)
    for name, look in (("judge", LIGHT), ("judge-dark", DARK), ("judge-phone", PHONE)):
        page = new_page(user=make_member(collection, f"alice-{name}").user, **look)
        page.goto("/c/books/judge/")
        page.get_by_role("button", name="Start judging").click()
        page.wait_for_selector("#answer")
        picture(page, name, folder)


def test_pictures_of_a_collection(instance: dict[str, str], new_page: NewPage, folder: Path) -> None:
    books, _campaign, charlie = large_site(900, "books")
    Collection.objects.filter(pk=books.pk).update(title="Questions about the language")
    analyse()
    ensure_offline()
    page = new_page(user=charlie.user, **LIGHT)
    picture(page, "home", folder, "/c/books/", high=1040)
    page.goto("/c/books/quality/")
    page.set_viewport_size({"width": 1280, "height": 900})
    page.locator("#matrix").evaluate("heading => scrollTo(0, heading.getBoundingClientRect().top + scrollY - 24)")
    picture(page, "agreement", folder)
    suspects.LABEL_ERRORS.compute_now(books)
    picture(page, "label-errors", folder, "/c/books/quality/label-errors/")


def test_pictures_of_the_benchmark(instance: dict[str, str], new_page: NewPage, folder: Path) -> None:
    collection = scene.collection_of_books()
    charlie = make_member(collection, "charlie", Role.ADMIN)
    runs = scene.runs_of(collection)
    before = versions.original_version(collection)
    reports.ensure_report(collection, before, before, runs, scene.DEPTH)
    page = new_page(user=charlie.user, **LIGHT)
    picture(page, "holes-safety", folder, "/c/books/benchmark/hole-filling/")
    done = scene.filled(collection, runs)
    assert done.after is not None
    report = reports.ensure_report(collection, before, done.after, runs, scene.DEPTH)
    queries, _documents = scene.by_id(collection)
    picture(page, "holes-report", folder, f"/c/books/benchmark/report/{report.number}/", high=1180)
    picture(page, "holes-query", folder, f"/c/books/benchmark/queries/{queries['q3'].pk}/", high=860)


def test_pictures_of_agents(instance: dict[str, str], new_page: NewPage, folder: Path) -> None:
    collection = with_aspects(wings(2))
    Collection.objects.filter(pk=collection.pk).update(title="How wings lift")
    graded(traced(collection, "adaptive"))
    job = traced(collection, "fixed")
    page = new_page(user=make_member(collection, "charlie", Role.ADMIN).user, **LIGHT)
    picture(page, "agents", folder, "/c/wings/benchmark/agents/?protocol=adaptive")
    picture(page, "agent-traces", folder, f"/c/wings/benchmark/agents/{job.number}/traces/", high=1200)


def test_pictures_of_answers(instance: dict[str, str], new_page: NewPage, folder: Path) -> None:
    ensure_offline()
    books = scene.collection_of_books()
    for query in Query.objects.filter(collection=books):
        query.answers = [f"the reference says in its paragraph {query.pk % 9} how they behave"]
        query.save()
    runs = scene.runs_of(books)
    charlie = make_member(books, "charlie", Role.ADMIN)
    versions.original_version(books)
    evaluation = begin(books, systems=[run.name for run in runs[:4]], generators=(OFFLINE,), judge=OFFLINE, k=10)
    answer_all()
    scene.filled(books, runs)
    page = new_page(user=charlie.user, **LIGHT)
    picture(page, "answers", folder, "/c/books/benchmark/answers/", high=1400)
    page.set_viewport_size(LIGHT["viewport"])
    page.goto(f"/c/books/benchmark/answers/{evaluation.number}/queries/")
    page.locator("table a").first.click()
    picture(page, "answers-one", folder)


def test_pictures_of_synthesis(instance: dict[str, str], new_page: NewPage, folder: Path) -> None:
    steel = make_collection("steel", title="Casting steel")
    options = {"judge": "offline-rewriter", "writer": "offline-rewriter", "seed": 0, "dev": 0.0}
    made = Synthesis.objects.create(collection=steel, key="k", options=options, total=3, done=3, state="ready")
    bundle = json.loads(GOLDEN.read_text())
    for place, seed in enumerate(("why do slabs crack", "how fast may a plate cool", "what makes steel brittle")):
        row = {"place": place, "seed_id": f"q{place}", "seed_text": seed}
        SyntheticBundle.objects.create(synthesis=made, bundle={**bundle, "query_id": f"synthetic-{place}"}, **row)
    page = new_page(user=make_member(steel, "charlie", Role.ADMIN).user, **LIGHT)
    picture(page, "synthesis", folder, f"/c/steel/benchmark/synthesis/{made.number}/")
    page.get_by_role("link", name="Why does a plate").first.click()
    page.wait_for_selector("text=Must not provide")
    picture(page, "synthesis-bundle", folder, high=1000)


def test_picture_of_the_second_review_of_aspects(instance: dict[str, str], new_page: NewPage, folder: Path) -> None:
    collection, query, people = ice_scene()
    decide_all(query, people["bob"])
    accept_all(make_member(collection, "eve", Role.ADJUDICATOR), {"a1": 4, "a2": 3})
    page = new_page(user=people["charlie"].user, **LIGHT)
    picture(page, "aspects-review", folder, "/c/ice/aspects/review/", high=1280)
