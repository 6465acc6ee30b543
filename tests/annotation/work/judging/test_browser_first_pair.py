"""From signing in to ten pairs in a real Chromium, and a look that follows the person."""

import pytest

from annotation.models import Assignment
from annotation.people.accounts.passwords import PasswordHasher
from corpus.models import Judgment
from tests.annotation.work.judging.open_desk import PHONE, open_desk, settle
from tests.factories import make_collection, make_member
from tests.judging_scene import make_scene

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
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
def alice():
    collection = make_collection("books", title="Python's reference", daily_target=20)
    make_scene(collection, 12)
    member = make_member(collection, "alice")
    member.lent = 1  # she has read the guidelines, which come before the first pair
    member.save()
    member.user.password = PasswordHasher().encode(WORD, "salt" * 4)  # as the site hashes, not the quick one of tests
    member.user.save()
    return member


def sign_in(page) -> None:
    page.goto("/accounts/login/")
    page.locator("[name=login]").fill("alice")
    page.locator("[name=password]").fill(WORD)
    page.locator("[name=password]").press("Enter")


def test_signing_in_leads_to_the_first_pair_and_ten_are_judged_by_keyboard(alice, new_page, instance):
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


def test_a_press_that_comes_too_soon_is_said_to_be_ignored_and_below_1280_a_button_jumps(alice, new_page, instance):
    type(alice.collection).objects.update(min_judgment_ms=900)
    page = open_desk(new_page, alice, viewport={"width": 1024, "height": 600})
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


def test_the_look_is_the_persons_and_follows_to_another_device(alice, new_page, instance):
    page = new_page(user=alice.user)
    page.goto("/accounts/")
    page.get_by_label("Theme").select_option("dark")
    page.get_by_label("Document text size").select_option("large")
    page.get_by_label("Document typeface").select_option("serif")
    page.locator("#look button").click()
    other = open_desk(new_page, alice)
    style = other.evaluate(
        "() => { const s = getComputedStyle(document.querySelector('.document .text')); "
        "return [s.fontSize, s.fontFamily, getComputedStyle(document.body).backgroundColor]; }"
    )
    assert style[0] == "20px" and "Charter" in style[1] and style[2] == "rgb(22, 23, 26)"


def test_on_a_phone_four_grades_are_one_row_and_no_heading_is_broken_in_a_word(alice, new_page, violations, instance):
    type(alice.collection).objects.update(grades=3)
    page = new_page(user=alice.user, **PHONE)
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
