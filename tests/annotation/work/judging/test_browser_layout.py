"""What is in sight on the judging page without scrolling: on desktops, on a phone, and enlarged to twice its size."""

import pytest
from playwright.sync_api import Page

from tests.annotation.work.judging.open_desk import PHONE, settle
from tests.factories import make_collection, make_member
from tests.judging_scene import make_scene

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

IN_SIGHT = """() => {
  const bar = document.querySelector(".actions").getBoundingClientRect();
  const seen = (box) => box && box.height > 0 && box.top >= 0 && box.bottom <= bar.top + 1;
  const box = (selector) => document.querySelector(selector)?.getBoundingClientRect();
  const range = document.createRange();
  range.selectNodeContents(document.querySelector(".document .text"));
  const lines = new Set([...range.getClientRects()].filter(seen).map((rect) => Math.round(rect.bottom / 12)));
  return {
    grades: [...document.querySelectorAll(".grade")].every((one) => one.getBoundingClientRect().bottom <= innerHeight),
    others: [...document.querySelectorAll(".others > *")].every((it) => it.getBoundingClientRect().right <= innerWidth),
    query: seen(box("#query")), lines: lines.size, turn: seen(box(".turn")),
    beside: (box(".debate")?.left ?? 0) >= (box(".document")?.right ?? Infinity),
    debate: (box(".debate")?.bottom ?? 0) <= bar.top,
    sideways: document.documentElement.scrollWidth > innerWidth,
  };
}"""


@pytest.fixture
def page(new_page, instance, request) -> Page:
    collection = make_collection("books", title="Python's reference")
    alice = make_member(collection, "alice")
    make_scene(collection, 3)
    page = new_page(user=alice.user, **request.param)
    page.goto("/c/books/judge/")
    page.get_by_role("button", name="Start judging").click()
    page.wait_for_selector("#answer")
    return page


def desktop(width: int, height: int) -> dict[str, object]:
    return {"viewport": {"width": width, "height": height}}


SPILLS = """() => [...document.querySelectorAll(".panel .button, .pair-card .button")]
  .filter((it) => it.checkVisibility())
  .filter((it) => it.scrollWidth > it.clientWidth || it.getBoundingClientRect().right > innerWidth)
  .map((it) => it.textContent.trim())"""
INSIDE = """() => [...document.querySelectorAll("#query, .grade, .others summary")].every((it) => {
  const box = it.getBoundingClientRect();
  return box.height > 0 && box.top >= 0 && box.bottom <= innerHeight && box.left >= 0 && box.right <= innerWidth;
})"""


@pytest.mark.parametrize("page", [desktop(1440, 900)], indirect=True)
def test_the_debate_stands_beside_the_text_and_keys_are_shortcuts_that_move_nothing(page):
    for width, height in ((1440, 900), (1280, 800)):
        page.set_viewport_size({"width": width, "height": height})
        seen = page.evaluate(IN_SIGHT)
        assert seen["grades"] and seen["others"] and seen["query"] and seen["lines"] >= 6
        assert seen["turn"] and seen["beside"] and not seen["sideways"]
        assert seen["debate"], "its lower edge, with the fade that says there is more, ends above the decision bar"
    relevant = page.get_by_role("button", name="Relevant", exact=True)
    assert relevant.get_attribute("aria-keyshortcuts") == "1", "a key is no part of a button's name"
    keys = page.eval_on_selector_all("[data-key]", "them => them.map((it) => [it.dataset.key, it.ariaKeyShortcuts])")
    assert {"0", "1", "s", "f", "c", "g", "?"} <= {key for key, _ in keys}
    assert all(key == shortcut for key, shortcut in keys)
    page.set_viewport_size({"width": 1280, "height": 560})
    page.evaluate("scrollTo(0, 10)")
    for key in ("g", "Escape", "s", "Escape", "f", "Escape", "c", "Escape", "?", "Escape"):
        page.keyboard.press(key)
        assert page.evaluate("scrollY") == 10, key
        assert not page.evaluate("document.activeElement.matches('.danger, [data-key=u], .grade')"), key


@pytest.mark.parametrize("page", [PHONE, desktop(720, 450)], indirect=True, ids=["phone", "1440 x 900 at 200%"])
def test_narrow_the_query_six_lines_and_the_grades_are_in_sight_and_stay_there(page):
    seen = page.evaluate(IN_SIGHT)
    assert seen["grades"] and seen["others"] and seen["query"] and not seen["sideways"]
    assert seen["lines"] >= 6
    page.evaluate("scrollTo({top: 1200, behavior: 'instant'})")
    assert page.evaluate(INSIDE)
    heights = page.evaluate("[...document.querySelectorAll('.grade, .others .button')].map(e => e.offsetHeight)")
    assert min(heights) >= 44


@pytest.mark.parametrize("page", [PHONE, desktop(1440, 900)], indirect=True, ids=["phone", "desktop"])
def test_what_is_done_and_left_stays_in_one_line_with_the_saved_answer(page):
    settle(page, "1")
    saved, counter = page.locator(".counts .said"), page.locator(".counts > p").first
    saved.wait_for()
    assert " ".join(counter.inner_text().split()) == "1 today · 2 left"
    boxes = [counter.bounding_box(), saved.bounding_box()]
    assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"] and boxes[1]["x"] + boxes[1]["width"] <= 1440
    assert abs(sum((-1) ** n * (box["y"] + box["height"] / 2) for n, box in enumerate(boxes))) < 8, "one line"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("page", [PHONE], indirect=True)
def test_on_a_phone_the_query_folds_to_a_line_that_opens_and_no_words_leave_their_buttons(page):
    for panel in ("skip", "flag"):
        page.locator(f"#{panel} > summary").tap()
        assert page.locator(f"#{panel} .panel .button").last.bounding_box()["width"] > 300
        assert page.evaluate(SPILLS) == []
    page.reload()
    drawn = "() => getComputedStyle(document.querySelector('.question')).clipPath"
    assert page.evaluate(drawn) == "none"
    before = page.evaluate("document.documentElement.scrollHeight")
    page.evaluate("scrollTo(0, 300)")
    page.wait_for_function("document.querySelector('.question.folded')")
    assert page.evaluate(drawn) != "none"
    assert page.evaluate("document.documentElement.scrollHeight") == before, "nothing moves"
    page.locator("#query").tap(position={"x": 10, "y": 5})
    assert page.evaluate(drawn) == "none"
    page.goto("/c/books/judge/query/")
    assert page.locator(".query-keys", has_text="A grade key").is_hidden(), "a phone has no keys"
    page.locator(".card-more > summary").first.tap()
    assert page.locator(".card-comment").first.bounding_box()["width"] > 180
    assert page.evaluate(SPILLS) == []
