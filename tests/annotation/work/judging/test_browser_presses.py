"""A second press in a real Chromium, by key, mouse or touch: nothing is judged unread, however slow the machine is."""

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
LONG = 2000  # Milliseconds in which two taps come on any machine.


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


def set_rest(page, milliseconds: int) -> None:
    page.evaluate(f"document.querySelector('#desk').dataset.rest = {milliseconds}")


@pytest.mark.parametrize(("press", "options"), first_quick([(by_key, {}), (by_mouse, {}), (by_touch, PHONE)]))
@pytest.mark.parametrize("role", first_quick([Role.ANNOTATOR, Role.ADJUDICATOR]))
def test_a_second_press_judges_nothing(books, new_page, instance, press, options, role):
    adjudicates = role == Role.ADJUDICATOR
    for _ in range(4):
        item = make_item(make_pair(books))
        if adjudicates:
            type(item).objects.filter(pk=item.pk).update(state="conflict", reason="conflict")
    alice = make_member(books, "alice", role)
    if adjudicates:
        page = new_page(user=alice.user, **options)
        page.goto("/c/books/adjudicate/")
    else:
        page = open_desk(new_page, alice, **options)
    for number in (1, 2):
        page.wait_for_timeout(LOOKED)
        set_rest(page, 0)
        item = page.locator("#desk").get_attribute("data-item")
        press(page)
        page.wait_for_selector(f"#desk[data-rest='400']:not([data-item='{item}'])")
        set_rest(page, 60_000)
        press(page)
        page.wait_for_timeout(100)
        assert Judgment.objects.count() == number


def test_skip_and_flag_rest_too(books, new_page: NewPage, instance) -> None:
    make_scene(books, 2)
    page = open_desk(new_page, make_member(books, "alice"))
    set_rest(page, 60_000)
    page.keyboard.press("s")
    page.keyboard.press("f")
    page.locator("#skip summary").click()
    page.evaluate("document.querySelector('[name=reason]').click()")
    assert page.locator("details.sheet[open]").count() == 0
    page.wait_for_timeout(LOOKED)
    assert set(Assignment.objects.values_list("state", flat=True)) == {"open"}
    set_rest(page, 0)
    page.keyboard.press("s")
    assert page.locator("#skip[open]").count() == 1


@pytest.mark.parametrize("apart", first_quick((120, 30, 350)))
@pytest.mark.parametrize("where", ["judge", "adjudicate", "judge/query"])
def test_a_double_tap_on_one_place_judges_one_pair(books, new_page: NewPage, instance, where: str, apart: int) -> None:
    """The finger stays where it is: the second tap falls on whatever has come there, before or after the answer."""
    type(books).objects.update(min_judgment_ms=LONG)
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
    page.wait_for_timeout(LONG + LOOKED)
    box = page.locator(".grade").first.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.touchscreen.tap(x, y)
    page.wait_for_timeout(apart)
    page.touchscreen.tap(x, y)
    until(Judgment.objects.exists)
    page.wait_for_timeout(LOOKED)
    assert Judgment.objects.count() == 1
    if where == "judge/query":  # nor does a key
        page.wait_for_timeout(LONG)
        page.keyboard.press("1")
        until(lambda: Judgment.objects.count() == 2)
        page.keyboard.press("1")
        page.wait_for_timeout(100)
        assert Judgment.objects.count() == 2
        assert min(Judgment.objects.values_list("milliseconds", flat=True)) >= LONG
