"""A second press in a real Chromium, 30 to 350 ms after the first, by key, mouse or touch: nothing is judged unread."""

from collections.abc import Callable

import pytest

from annotation.models import Assignment, Role
from corpus.models import Judgment
from tests.annotation.work.judging.open_desk import PHONE, open_desk
from tests.factories import make_collection, make_document, make_item, make_member, make_pair, make_query
from tests.instances import until
from tests.judging_scene import TEXT, make_scene
from tests.plugin_browser import NewPage
from tests.stages import first_quick

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
LOOKED = 450
AFTER = (30, 150, 250, 300)
"""Milliseconds between a pair's arrival and the second press, less what this test itself takes."""


@pytest.fixture
def books():
    return make_collection("books", min_judgment_ms=300)


def by_key(page) -> None:
    page.keyboard.press("1")


def by_mouse(page) -> None:
    box = page.locator(".grade").first.bounding_box()
    page.mouse.click(box["x"] + 5, box["y"] + 5)


def by_touch(page) -> None:
    box = page.locator(".grade").first.bounding_box()
    page.touchscreen.tap(box["x"] + 5, box["y"] + 5)


def next_pair(page) -> None:
    """Until another pair is on the desk; at once, without the polling of a locator."""
    page.wait_for_function("""() => {
        const item = document.querySelector("#desk").dataset.item;
        const other = item !== window.seen;
        if (other) { window.seen = item; window.came = performance.now(); }
        return other;
    }""")


def press_twice(page, press: Callable, after: int) -> None:
    page.wait_for_timeout(LOOKED)
    press(page)
    next_pair(page)
    page.wait_for_timeout(after)
    if page.evaluate("performance.now() - window.came") < 320:  # the press itself takes a moment
        press(page)


@pytest.mark.parametrize(("press", "options"), first_quick([(by_key, {}), (by_mouse, {}), (by_touch, PHONE)]))
@pytest.mark.parametrize("role", first_quick([Role.ANNOTATOR, Role.ADJUDICATOR]))
def test_a_second_press_judges_nothing(books, new_page, instance, press, options, role):
    adjudicates = role == Role.ADJUDICATOR
    for _ in range(6):
        item = make_item(make_pair(books))
        if adjudicates:
            type(item).objects.filter(pk=item.pk).update(state="conflict", reason="conflict")
    alice = make_member(books, "alice", role)
    if adjudicates:
        page = new_page(user=alice.user, **options)
        page.goto("/c/books/adjudicate/")
    else:
        page = open_desk(new_page, alice, **options)
        page.keyboard.press("1")
    next_pair(page)
    for number, after in enumerate(AFTER, 1):
        press_twice(page, press, after)
        page.wait_for_timeout(100)
        assert Judgment.objects.count() == number


def test_skip_and_flag_rest_too(books, new_page: NewPage, instance) -> None:
    make_scene(books, 2)
    page = open_desk(new_page, make_member(books, "alice"))
    page.evaluate("document.querySelector('#desk').dataset.rest = 60000")
    page.keyboard.press("s")
    page.keyboard.press("f")
    page.locator("#skip summary").click()
    page.evaluate("document.querySelector('[name=reason]').click()")
    assert page.locator("details.sheet[open]").count() == 0
    page.wait_for_timeout(LOOKED)
    assert set(Assignment.objects.values_list("state", flat=True)) == {"open"}
    page.evaluate("document.querySelector('#desk').dataset.rest = 0")
    page.keyboard.press("s")
    assert page.locator("#skip[open]").count() == 1


@pytest.mark.parametrize("apart", first_quick((120, 30, 350)))
@pytest.mark.parametrize("where", ["judge", "adjudicate", "judge/query"])
def test_a_double_tap_on_one_place_judges_one_pair(books, new_page: NewPage, instance, where: str, apart: int) -> None:
    """The finger stays where it is: the second tap falls on whatever has come there, before or after the answer."""
    query = make_query(books)
    for _ in range(3):
        item = make_item(make_pair(books, query, make_document(books, TEXT)))
        if where == "adjudicate":
            type(item).objects.filter(pk=item.pk).update(state="conflict", reason="conflict")
    role = Role.ADJUDICATOR if where == "adjudicate" else Role.ANNOTATOR
    page = new_page(user=make_member(books, "alice", role).user, **PHONE)
    page.goto(f"/c/books/{where}/")
    if where != "adjudicate":
        page.locator("button.primary").first.tap()
    page.wait_for_selector(".grade")
    page.wait_for_timeout(LOOKED)
    box = page.locator(".grade").first.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.touchscreen.tap(x, y)
    page.wait_for_timeout(apart)
    page.touchscreen.tap(x, y)
    until(Judgment.objects.exists)
    page.wait_for_timeout(LOOKED)
    assert Judgment.objects.count() == 1
    if where == "judge/query":  # nor does a key
        page.keyboard.press("1")
        until(lambda: Judgment.objects.count() == 2)
        page.keyboard.press("1")
        page.wait_for_timeout(100)
        assert Judgment.objects.count() == 2
        assert min(Judgment.objects.values_list("milliseconds", flat=True)) >= 400
