"""A second review in a browser: by keyboard alone, accessible in every look, also without scripts."""

import pytest

from annotation.models import Membership, Role
from annotation.work.aspects import review_steps, reviews
from corpus.models import Collection, Query
from corpus.models.aspects import AspectReview
from tests.annotation.work.aspects.test_browser_aspects import LIGHT, LOOKS, fits, focused
from tests.aspect_reviews import ACCEPTED, accept_all, decide_all, ice_document, newest
from tests.aspects_scene import ice_scene
from tests.factories import make_member

pytestmark = pytest.mark.browser
Scene = tuple[Collection, Query, dict[str, Membership]]


@pytest.fixture
def scene(instance: dict[str, str]) -> Scene:
    collection, query, people = ice_scene()
    decide_all(query, people["bob"])
    return collection, query, people


def test_a_query_is_reviewed_by_keyboard(scene, new_page, violations):
    _collection, query, people = scene
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
def test_the_pages_are_accessible_and_fit_in_every_look(scene, new_page, violations, look):
    collection, query, people = scene
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
