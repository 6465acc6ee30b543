"""What is in sight on the judging page on desktops, a phone and enlarged; and from signing in to ten pairs."""

import pytest
from playwright.sync_api import Page

from annotation.models import Assignment
from annotation.people.accounts.passwords import PasswordHasher
from corpus.models import Judgment
from tests.annotation.work.judging.open_desk import PHONE, open_desk, settle
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
def page(collection, alice, new_page, instance, request) -> Page:
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
    drawn = "() => getComputedStyle(document.querySelector('.question')).clipPath"
    assert page.evaluate(drawn) == "none"
    before = page.evaluate("document.documentElement.scrollHeight")
    page.evaluate("scrollTo(0, 300)")
    page.wait_for_function("document.querySelector('.question.folded')")
    assert page.evaluate(drawn) != "none"
    assert page.evaluate("document.documentElement.scrollHeight") == before, "nothing moves"
    page.locator("#query").tap(position={"x": 10, "y": 5})
    assert page.evaluate(drawn) == "none"
    for panel in ("skip", "flag"):
        page.locator(f"#{panel} > summary").tap()
        assert page.locator(f"#{panel} .panel .button").last.bounding_box()["width"] > 300
        assert page.evaluate(SPILLS) == []
    page.goto("/c/books/judge/query/")
    assert page.locator(".query-keys", has_text="A grade key").is_hidden(), "a phone has no keys"
    page.locator(".card-more > summary").first.tap()
    assert page.locator(".card-comment").first.bounding_box()["width"] > 180
    assert page.evaluate(SPILLS) == []


WORD = "correct horse battery staple"
SPLIT = """() => [...document.querySelectorAll("h1, h2, h3, h4")].flatMap((heading) => {
  if (!heading.checkVisibility()) return [];
  const walker = document.createTreeWalker(heading, NodeFilter.SHOW_TEXT);
  const broken = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    for (const word of node.data.matchAll(/\\S+/g)) {
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      if (new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1) broken.push(word[0]);
    }
  }
  return broken;
})"""


@pytest.fixture
def newcomer(collection, alice):
    type(collection).objects.update(daily_target=20)
    make_scene(collection, 12)
    alice.lent = 1  # she has read the guidelines, which come before the first pair
    alice.save()
    alice.user.password = PasswordHasher().encode(WORD, "salt" * 4)  # as the site hashes, not the quick one of tests
    alice.user.save()
    return alice


def sign_in(page) -> None:
    page.goto("/accounts/login/")
    page.locator("[name=login]").fill("alice")
    page.locator("[name=password]").fill(WORD)
    page.locator("[name=password]").press("Enter")


def test_signing_in_leads_to_the_first_pair_and_ten_are_judged_by_keyboard(newcomer, new_page, instance):
    page = new_page()
    pages = []
    page.on("framenavigated", lambda frame: pages.append(frame.url))
    sign_in(page)
    page.wait_for_selector("#answer")
    assert [url.split("?")[0].rpartition("/c/")[2] for url in pages if "/c/" in url][:1] == ["books/judge/"]
    assert page.url.endswith("/c/books/judge/"), "a reload asks for nothing"
    assert "0 of 20 today · 12 left" in " ".join(page.locator(".counts").inner_text().split())
    for number in range(10):
        settle(page, "10"[number % 2])
    assert Judgment.objects.count() == 10
    assert "10 of 20 today · 2 left" in " ".join(page.locator(".counts").inner_text().split())


def test_a_press_that_comes_too_soon_is_said_to_be_ignored_and_below_1280_a_button_jumps(newcomer, new_page, instance):
    type(newcomer.collection).objects.update(min_judgment_ms=900)
    page = open_desk(new_page, newcomer, viewport={"width": 1024, "height": 600})
    page.keyboard.press("1")
    assert "Ignored" in page.locator("#too-fast").inner_text()
    assert not Judgment.objects.exists()
    page.wait_for_function("() => !document.querySelector('#too-fast').textContent")
    page.locator(".to-debate").click()
    assert page.evaluate("document.activeElement.id") == "debate"
    page.locator(".to-text").click()
    assert page.evaluate("document.activeElement.id") == "document-title"
    page.set_viewport_size({"width": 1280, "height": 800})
    assert page.locator(".to-debate").is_hidden()


def test_the_look_is_the_persons_and_follows_to_another_device(newcomer, new_page, instance):
    page = new_page(user=newcomer.user)
    page.goto("/accounts/")
    page.get_by_label("Theme").select_option("dark")
    page.get_by_label("Document text size").select_option("large")
    page.get_by_label("Document typeface").select_option("serif")
    page.locator("#look button").click()
    other = open_desk(new_page, newcomer)
    style = other.evaluate(
        "() => { const s = getComputedStyle(document.querySelector('.document .text')); "
        "return [s.fontSize, s.fontFamily, getComputedStyle(document.body).backgroundColor]; }"
    )
    assert style[0] == "20px" and "Charter" in style[1] and style[2] == "rgb(22, 23, 26)"


def test_on_a_phone_four_grades_are_one_row_and_no_heading_breaks_in_a_word(newcomer, new_page, violations, instance):
    type(newcomer.collection).objects.update(grades=3)
    page = new_page(user=newcomer.user, **PHONE)
    page.goto("/c/books/judge/")
    page.get_by_role("button", name="Start judging").tap()
    page.wait_for_selector("#answer")
    tops = page.eval_on_selector_all(".bar .grade, .bar > .more", "all => all.map((one) => one.offsetTop)")
    assert len(tops) == 5 and max(tops) - min(tops) < 30
    assert page.evaluate(SPLIT) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("button", name="More actions").tap()
    page.locator("#skip summary").tap()
    assert page.locator("#skip .reason").first.is_visible()
    assert violations(page) == []
    item = page.locator("#desk").get_attribute("data-item")
    page.locator("#skip .reason").first.tap()
    page.wait_for_function("item => document.querySelector('#desk').dataset.item !== item", arg=item)
    assert Assignment.objects.filter(state="skipped").count() == 1
