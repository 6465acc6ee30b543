"""The workshop in a browser: a query is decomposed, weighed, reviewed and exported by keyboard alone (check 11)."""

import json
from pathlib import Path
from typing import Any

import pytest

from annotation.models import Membership, Role
from annotation.models.aspects import PassageDraft
from annotation.work.aspects import drafts, review_steps, reviews, second
from corpus.aspects import documents, revising
from corpus.aspects.entries import Wording
from corpus.models import Collection, Document, Label, Query
from corpus.models.aspects import Aspect, AspectReview
from tests.aspect_reviews import ACCEPTED, accept_all, decide_all, ice_document, newest
from tests.aspects_scene import ICE, ice_scene
from tests.factories import make_member
from tests.open_web import NOISY, open_web
from tests.stages import first_quick

pytestmark = pytest.mark.browser
LIGHT = {"viewport": {"width": 1280, "height": 900}}
DARK = {**LIGHT, "color_scheme": "dark"}
PHONE = {"viewport": {"width": 375, "height": 700}, "has_touch": True, "is_mobile": True}
LOOKS = first_quick([LIGHT, DARK, PHONE])
WHY = "Without it the answer is wrong."
SETTLED = "() => !document.querySelector('.htmx-request, .htmx-swapping, .htmx-settling')"
Scene = tuple[Collection, Query, dict[str, Membership]]


@pytest.fixture
def scene(instance: dict[str, str]) -> Scene:
    return ice_scene()


def fits(page: Any) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))


def focused(page: Any) -> str:
    """Id of the element that has the focus; the page's body has none."""
    return str(page.evaluate("document.activeElement.id || document.activeElement.tagName"))


def act(page: Any, key: str) -> None:
    """A key that sends something: the desk is another one after it."""
    number = page.locator("#desk").get_attribute("data-number")
    page.keyboard.press(key)
    page.locator(f"#desk:not([data-number='{number}'])").wait_for()
    page.wait_for_function(SETTLED)


def add(page: Any, text: str, strength: str) -> None:
    """From the add form's first field, by Tab and arrows alone."""
    page.keyboard.type(text)
    page.keyboard.press("Tab")
    page.keyboard.type(WHY)
    page.keyboard.press("Tab")
    for _ in range({"5": 2, "4": 1, "3": 0}[strength]):
        page.keyboard.press("ArrowRight")
    act(page, "Enter")
    assert focused(page) == "add-text"


def test_a_query_is_decomposed_weighed_reviewed_and_exported_by_keyboard(scene, new_page, violations, console):
    _collection, query, people = scene
    page = new_page(user=people["bob"].user, **LIGHT)
    page.goto(f"/c/ice/aspects/{query.pk}/")
    assert violations(page) == []
    page.fill("#add-text", "Flow")
    page.fill("#add-rationale", "One. Two. Three.")
    page.locator("#add button").click()
    page.locator("#problem .notice").wait_for()
    assert page.evaluate("document.activeElement.closest('#problem') !== null")
    assert page.input_value("#add-rationale") == "One. Two. Three.", "what could not be saved stays"
    console[:] = [line for line in console if "422" not in line]
    for name in ("text", "rationale"):
        page.fill(f"#add-{name}", "")
    page.locator("#add-text").focus()
    add(page, "Ice flows under its own weight", "5")
    assert page.locator("#problem .notice").count() == 0
    add(page, "Heat melts the base", "3")
    page.keyboard.press("Escape")
    assert violations(page) == []

    page.keyboard.press("w")
    assert focused(page) == "w-a1-5"
    page.keyboard.press("ArrowLeft")
    assert page.locator("[data-weight]").first.text_content() == "0.57"
    act(page, "Enter")
    assert list(Aspect.objects.order_by("place").values_list("importance", flat=True)) == [4, 3]
    assert focused(page) == "weights"

    page.keyboard.press("j")
    first = Document.objects.get(external_id="Ice_sheet_0")
    assert focused(page) == f"card-{first.pk}"
    page.keyboard.press("1")
    act(page, "Enter")
    assert focused(page) == f"card-{Document.objects.get(external_id='Ice_sheet_1').pk}"
    page.keyboard.press("1")
    page.keyboard.press("2")
    act(page, "Enter")
    page.keyboard.press("2")
    act(page, "Enter")
    page.keyboard.press("0")
    page.keyboard.type("Off topic")
    act(page, "Enter")
    assert focused(page) == "review-h"
    assert violations(page) == []

    page.keyboard.press("u")
    page.locator("article.passage").wait_for()
    page.wait_for_function(SETTLED)
    assert focused(page) == "undo"
    page.keyboard.press("0")
    page.keyboard.type("It is a menu")
    act(page, "Enter")

    page.goto("/c/ice/aspects/")
    assert violations(page) == []
    with page.expect_download() as download:
        page.get_by_role("button", name="Export (JSON lines)").press("Enter")
    rows = [json.loads(line) for line in Path(download.value.path()).read_text().splitlines()]
    assert [(row["aspect_id"], row["importance"], row["doc_ids"]) for row in rows] == [
        ("a1", 4, ["Ice_sheet_0", "Ice_sheet_1"]),
        ("a2", 3, ["Ice_sheet_1", "Ice_sheet_2"]),
    ]
    assert Label.objects.filter(aspect__isnull=False, grade=0).count() == 2


@pytest.mark.slow
def test_a_page_is_fetched_refined_and_spread_over_two_aspects(scene, new_page, violations, monkeypatch):
    _collection, query, people = scene
    for text in ("Flow", "Heat"):
        revising.add_aspect(query, people["bob"].assessor, Wording(text, WHY))
    page = new_page(user=people["bob"].user, **LIGHT)
    page.goto(f"/c/ice/aspects/{query.pk}/")
    page.keyboard.press("f")
    assert focused(page) == "fetch-url"
    page.keyboard.type("http://ice.example/why")
    page.keyboard.press("Enter")
    page.locator("#incoming").wait_for()
    assert violations(page) == []
    with open_web(monkeypatch) as web:
        web.page("/why", NOISY)
        drafts.fetch_draft(PassageDraft.objects.get().pk)
    page.get_by_role("link", name="Edit text").click()
    assert violations(page) == []
    assert "penguins" not in page.input_value("#passage")
    page.fill("#passage", f"{ICE[0]} {ICE[2]} Buy skis.")
    page.get_by_role("button", name="sentence by sentence").press("Enter")
    page.locator("select[name=s]").first.wait_for()
    assert violations(page) == []
    for key in ("1", "^", "2", "^", "0"):
        page.keyboard.press(key)
    page.get_by_role("button", name="Save passages").press("Enter")
    page.wait_for_url("**/aspects/*/?focus=passages-h*")
    made = Document.objects.filter(external_id__startswith="passage-")
    assert {row.text for row in made} == {ICE[0], ICE[2]}
    assert {row.metadata["source"]["url"] for row in made} == {"http://ice.example/why"}


@pytest.mark.parametrize("look", LOOKS)
def test_the_pages_are_accessible_and_fit_in_every_look(scene, new_page, violations, look):
    _collection, query, people = scene
    bob, dana = people["bob"], people["dana"]
    for text, importance in (("Ice flows under its own weight", 5), ("Heat melts the base", 3), ("W" * 400, 2)):
        revising.add_aspect(query, bob.assessor, Wording(text, WHY, importance))
    long = Document.objects.get(external_id="Ice_sheet_1")
    Document.objects.filter(pk=long.pk).update(text="Longwordwithoutanyspace" * 40 + " " + ICE[1] * 60)
    documents.keep(query, bob.assessor, Document.objects.get(external_id="Ice_sheet_0"), ["a1"])
    documents.keep(query, bob.assessor, long, ["a1"])
    documents.discard(query, bob.assessor, Document.objects.get(external_id="Ice_sheet_3"), "Off topic")
    PassageDraft.objects.create(query=query, asked_by=bob, url="http://ice.example/", state="failed", error="Too slow.")
    arabic, chinese = (Query.objects.get(external_id=name) for name in ("q2", "q3"))
    revising.add_aspect(arabic, bob.assessor, Wording("يتدفق الجليد تحت وزنه", "لأن الجليد يزحف تحت الضغط.", 4))
    sample = second.draw_sample(bob)
    task = second.next_task(sample, dana)
    second.submit_reading(sample, dana, task.revision.pk, {entry.id: 3 for entry in task.entries})
    page = new_page(user=dana.user, **look)
    found = {}
    pages = ("", *(f"{one.pk}/" for one in (query, arabic, chinese)), f"{query.pk}/cut/{long.pk}/")
    for part in (*pages, "second-person/", "second-person/weigh/"):
        page.goto(f"/c/ice/aspects/{part}")
        if part == f"{query.pk}/":
            page.evaluate("document.querySelectorAll('#desk details, #keys').forEach(one => { one.open = true; })")
        found[part] = violations(page) + ([] if fits(page) else ["scrolls sideways"])
    assert {part: problems for part, problems in found.items() if problems} == {}


def test_a_query_is_reviewed_by_keyboard(scene, new_page, violations):
    _collection, query, people = scene
    decide_all(query, people["bob"])
    page = new_page(user=people["dana"].user, **LIGHT)
    page.goto("/c/ice/aspects/review/")
    page.get_by_role("button", name="Review next query").press("Enter")
    page.locator("[name=step][value=weights]").wait_for(state="attached")
    assert violations(page) == []
    for name, value in (("a1", 4), ("a2", 2)):
        page.locator(f"#w-{name}-{value}").press("Space")
    page.get_by_role("button", name="Save your weights").press("Enter")
    page.locator("[name=step][value=aspects]").wait_for(state="attached")
    assert violations(page) == []
    for name in ("granularity", "balance", "coverage"):
        page.locator(f"[name=v-{name}][value=accept]").press("Space")
    page.locator("#w-a1-5").press("ArrowRight")
    assert page.locator("#r-weights").is_hidden()
    page.locator("[name=v-weights][value=change]").press("Space")
    page.locator("#r-weights").fill("The base matters less.")
    page.get_by_role("button", name="Save and go to the documents").press("Enter")
    page.locator("[name=step][value=documents]").wait_for(state="attached")
    page.keyboard.press("j")
    assert focused(page) == f"card-{ice_document(0).pk}-a1"
    for _ in range(3):
        page.keyboard.press("a")
        page.keyboard.press("j")
    page.keyboard.press("x")
    page.locator(f"#r-{ice_document(2).pk}-a2").fill("On topic only.")
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("a")
    assert violations(page) == []
    page.get_by_role("button", name="Submit review").press("Enter")
    page.get_by_text("Review submitted.").wait_for()
    assert violations(page) == []
    row = AspectReview.objects.get()
    assert (row.state, row.accepted, newest(query)) == ("submitted", False, row.final.number)


@pytest.mark.parametrize("look", LOOKS)
def test_the_pages_of_a_review_are_accessible_and_fit_in_every_look(scene, new_page, violations, look):
    collection, query, people = scene
    decide_all(query, people["bob"])
    dana, eve = people["dana"], make_member(collection, "eve", Role.ADJUDICATOR)
    page = new_page(user=dana.user, **look)

    def visit(address: str) -> None:
        page.goto(f"/c/ice/aspects/{address}")
        page.evaluate("document.querySelectorAll('main details').forEach(one => { one.open = true; })")
        assert violations(page) == [] and fits(page), address

    review = reviews.claim_review(dana)
    visit(f"review/{review.pk}/")
    review_steps.give_weights(review, dana, {"a1": 3, "a2": 3})
    visit(f"review/{review.pk}/")
    review_steps.judge_aspects(review, dana, ACCEPTED, {}, newest(query))
    visit(f"review/{review.pk}/")
    reviews.release_review(dana, review)
    accept_all(eve, {"a1": 4, "a2": 3})
    for address in ("review/", f"review/{AspectReview.objects.get(reviewer=eve.assessor).pk}/", ""):
        visit(address)
