"""The reveal arm and the page of the arms in a real Chromium."""

import pytest

from annotation.models import Role
from annotation.work.experiments.studies import make_study
from corpus.models import Item, Judgment, Label
from tests.annotation.work.experiments.test_fairness import answer
from tests.evidence import make_assessor, make_judgment
from tests.factories import make_collection, make_member
from tests.judging_scene import make_scene

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
REVEAL = {"shown": 0, "hidden": 0, "reveal": 1}
READ = 600
"""Milliseconds after which the page takes a final vote: longer than the second half of a double click."""


@pytest.fixture
def collection():
    return make_collection("books", title="Python's reference", arms=REVEAL)


def begin(page) -> None:
    page.goto("/c/books/judge/")
    page.locator("[data-queue=waiting] button").click()
    page.wait_for_selector("#desk[data-step=first]")


def reveal(page, key: str) -> None:
    page.keyboard.press(key)
    page.wait_for_selector("#desk[data-step=final]")
    page.wait_for_timeout(READ)


def cast() -> list[tuple[str, int | None]]:
    return list(Judgment.objects.order_by("pk").values_list("step", "grade"))


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.weekly)])
def test_a_vote_the_debate_and_the_final_vote_by_keyboard(collection, alice, new_page, violations, instance, scheme):
    item, _ = make_scene(collection, 2)
    page = new_page(user=alice.user, color_scheme=scheme)
    begin(page)
    assert page.locator("#debate, .document mark").count() == 0
    assert violations(page) == []
    page.keyboard.press("c")
    page.keyboard.type("text alone")
    page.keyboard.press("Escape")
    reveal(page, "0")
    assert page.evaluate("document.activeElement.id") == "debate"
    assert "0 not relevant" in page.locator(".why").inner_text()
    assert page.locator("#comment-text").input_value() == "text alone"
    assert violations(page) == []
    page.reload()
    page.wait_for_selector("#desk[data-step=final] #debate")
    page.set_viewport_size({"width": 390, "height": 844})
    assert violations(page) == []
    page.wait_for_timeout(READ)
    page.keyboard.press("1")
    page.wait_for_selector("#desk[data-step=first]")
    assert cast() == [("first", 0), ("final", 1)]
    assert Label.objects.get(pair=item.pair).grade == 1
    page.keyboard.press("u")
    page.wait_for_selector("#desk[data-step=final]")
    page.keyboard.press("u")
    page.wait_for_function("() => document.querySelector('#desk').dataset.step === 'first'")
    assert page.locator("#debate").count() == 0
    assert cast()[2:] == [("final", None), ("first", None)]


def test_a_double_click_is_one_vote_in_both_steps_and_on_a_whole_query(collection, alice, new_page, instance):
    make_scene(collection, 3)
    page = new_page(user=alice.user)
    begin(page)
    page.locator(".grade").first.dblclick()
    page.wait_for_selector("#desk[data-step=final]")
    page.wait_for_timeout(READ)
    assert cast() == [("first", 1)]
    page.locator(".grade").first.click()
    page.wait_for_selector("#desk[data-step=first]")
    page.keyboard.press("1")
    page.keyboard.press("1")
    page.wait_for_selector("#desk[data-step=final]")
    page.wait_for_timeout(READ)
    assert cast() == [("first", 1), ("final", 1), ("first", 1)]
    page.keyboard.press("1")
    page.wait_for_selector("#desk[data-step=first]")
    page.goto("/c/books/judge/query/")  # the page of a whole query
    page.locator(".pair-card[data-step=first] .grade").first.dblclick()
    page.wait_for_selector(".pair-card[data-step=final]")
    page.wait_for_timeout(READ)
    assert cast()[4:] == [("first", 1)]
    page.locator(".pair-card[data-step=final] .grade").last.click()
    page.wait_for_selector(".pair-card.settled")
    assert cast()[4:] == [("first", 1), ("final", 0)]


def test_axe_finds_nothing_on_the_page_of_the_arms(collection, alice, new_page, violations, instance):
    """Some votes in every arm, and a study that has begun."""
    items = make_scene(collection, 9, overlap=2)
    for place, item in enumerate(items):
        make_judgment(item.pair, make_assessor(collection, "gold", "reference"), place % 2)
    Item.objects.filter(pk__in=[item.pk for item in items[:2]]).update(arm="shown")
    Item.objects.filter(pk__in=[item.pk for item in items[2:4]]).update(arm="hidden")
    for member, turns in ((alice, "10011000"), (make_member(collection, "bob"), "10110010")):
        for place, grade in enumerate(turns):
            answer(member, int(grade), seconds=20 + place)
    others = [make_member(collection, f"person-{number}") for number in range(4)]
    make_study(by=None, collection=collection, people=[member.pk for member in others], pairs=2, overlap=2)
    for member in others:
        answer(member, 1, seconds=10)
    page = new_page(user=make_member(collection, "charlie", Role.ADMIN).user)
    page.goto("/c/books/debate-effect/")
    page.locator("#new-study summary").click()
    assert violations(page) == []
    page.goto("/c/books/settings/")
    assert violations(page) == []
    page.locator("#arms").scroll_into_view_if_needed()
