"""The table of pairs in a real browser: keyboard, selection, a bulk act, saved views; accessible in every look."""

import pytest

from corpus.models import Collection, CurrentJudgment, Item, Judgment
from tests.admin_site import judged_collection, people_at_work
from tests.annotation.home.overview.test_admin_browser import fits
from tests.factories import make_document, make_pair, make_query

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
LIGHT = {"viewport": {"width": 1280, "height": 900}}
PHONE = {"viewport": {"width": 390, "height": 844}}


@pytest.fixture
def charlie(instance):
    return people_at_work(judged_collection())["charlie"].user


def test_pairs_are_walked_selected_sent_and_taken_back_by_keyboard(charlie, new_page, violations):
    page = new_page(user=charlie, **LIGHT)
    page.goto("/c/books/pairs/?sort=query")
    heights = page.eval_on_selector_all("table.pairs tbody tr", "rows => rows.map(row => row.offsetHeight)")
    assert max(heights) <= 48, "two lines"
    for key in ("j", "x", "j", "ArrowDown", "k", "x"):
        page.keyboard.press(key)
    assert page.locator("tr.selected").count() == 2
    assert page.locator("#selected-count").inner_text() == "Pairs selected: 2"
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "q"
    page.keyboard.type("jx")
    assert page.locator("tr.selected").count() == 2, "letters in the search are letters"
    page.get_by_text("No pair matches").wait_for()
    page.locator("#q").fill("")
    page.wait_for_function("() => document.querySelectorAll('table.pairs tbody tr').length === 18")
    page.locator("#select-page").check()
    assert page.locator("tr.selected").count() == 18
    page.locator("#columns-menu summary").click()
    assert violations(page) == [] and fits(page)
    page.locator("#select-all").check()
    assert "all 18 pairs" in page.locator("#selected-count").inner_text()
    page.get_by_label("Action").select_option("send")
    page.get_by_role("button", name="Continue").click()
    page.wait_for_url("**/pairs/actions/*/")
    assert "18\npairs selected" in page.locator(".grid").inner_text()
    assert violations(page) == [] and fits(page)
    page.get_by_role("button", name="Confirm").click()
    page.get_by_role("button", name="Undo").wait_for()
    assert violations(page) == [] and fits(page)
    assert Item.objects.filter(reason="requested", state="open").exists()
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Action undone.").wait_for()
    assert not Item.objects.filter(reason="requested", state="open").exists()


def test_on_a_phone_the_table_begins_in_the_first_screen_filters_open_in_place_and_a_pair_is_its_page(
    charlie, new_page
):
    page = new_page(user=charlie, **PHONE)
    page.goto("/c/books/pairs/")
    row = page.locator("table.pairs tbody tr").first.bounding_box()
    assert row["y"] + row["height"] <= PHONE["viewport"]["height"], f"the first pair ends at {row}"
    assert not page.locator("#q").is_visible()
    page.get_by_text("Filters", exact=True).click()
    page.get_by_label("State", exact=True).select_option("labelled")
    page.wait_for_url("**state=labelled**")
    assert page.locator("#state").is_visible(), "they stay open while the table changes"
    assert page.locator("#saved-views").count() == 1
    assert page.locator("#saved-views input[name=query]").first.get_attribute("value") == "state=labelled"

    page.goto("/c/books/pairs/")
    page.locator("table.pairs tbody th a").nth(1).click()
    page.wait_for_url("**/pairs/*/")
    second = page.url
    page.get_by_role("link", name="Next").click()
    page.wait_for_url(lambda url: url != second)
    page.get_by_role("link", name="Previous").click()
    page.wait_for_url(second)
    page.get_by_role("button", name="1 relevant").click()
    page.get_by_text("Set label: done").wait_for()
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Action undone.").wait_for()


def test_without_a_script_boxes_and_buttons_do_the_same(charlie, new_page):
    page = new_page(user=charlie, java_script_enabled=False, **LIGHT)
    page.goto("/c/books/pairs/")
    page.get_by_role("link", name="Label", exact=True).click()
    page.wait_for_url("**sort=label**")
    page.locator("table.pairs input[name=pair]").first.check()
    page.get_by_role("button", name="Continue").click()
    page.wait_for_url("**/pairs/actions/*/")
    assert "1\npair selected" in page.locator(".grid").inner_text()


def test_twelve_rows_with_sixty_letters_of_each_query_are_seen_at_once(charlie, new_page):
    books = Collection.objects.get()
    document = make_document(books, "A mapping maps. " * 20, title="A title that is longer than any column. " * 5)
    for number in range(14):
        text = f"{'Which objects may be the keys of mappings that are kept'} {number:03}?"
        query = make_query(books, text, external_id=f"long-{number}")
        assert len(query.text) == 60
        make_pair(books, query, document)
    page = new_page(user=charlie)
    cut = "cells => cells.filter(cell => cell.scrollHeight > cell.clientHeight + 1).map(cell => cell.innerText)"
    boxes = "rows => rows.map(row => row.getBoundingClientRect()).map(box => [box.top, box.bottom])"
    for width in (1280, 1440, 1920):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto("/c/books/pairs/")
        rows = page.eval_on_selector_all("table.pairs tbody tr", boxes)
        assert rows[0][0] < 300 and rows[11][1] <= 900, (width, rows[0], rows[11])
        assert page.eval_on_selector_all("table.pairs tbody th .clamp", cut) == [], width
        assert page.evaluate("document.querySelector('table.pairs').getBoundingClientRect().right") > width - 40
        page.evaluate("scrollTo(0, 400)")
        assert page.evaluate("document.querySelector('table.pairs thead th').getBoundingClientRect().top") == 0
        page.locator("table.pairs tbody th a").nth(14).click()
        page.locator("#panel-h").wait_for()
        assert page.eval_on_selector_all("table.pairs tbody th .clamp", cut) == [], "beside the panel too"
        assert fits(page), width


def test_a_pair_is_read_labelled_sent_and_noted_beside_the_list_by_keyboard(charlie, new_page, violations):
    page = new_page(user=charlie, **LIGHT)
    page.goto("/c/books/pairs/?sort=query")
    rows = page.locator("table.pairs tbody tr")
    shown = lambda: page.locator("#panel-h").inner_text()  # noqa: E731
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.locator("#panel-h").wait_for()
    assert page.evaluate("document.activeElement.id") == "panel-h" and page.url.endswith("?sort=query")
    assert violations(page) == [] and fits(page)
    first = shown()
    assert first in rows.nth(0).inner_text()
    page.keyboard.press("j")
    page.wait_for_function("text => document.querySelector('#panel-h').innerText !== text", arg=first)
    assert shown() in rows.nth(1).inner_text() and "shown" in (rows.nth(1).get_attribute("class") or "")
    page.keyboard.press("k")
    page.wait_for_function("text => document.querySelector('#panel-h').innerText === text", arg=first)

    page.get_by_role("group", name="Set label").get_by_role("button", name="0 not relevant").focus()
    page.keyboard.press("Enter")
    page.get_by_text("Set label: done").wait_for()
    judgment = Judgment.objects.get(step="adjudication", item=None)
    assert (judgment.grade, judgment.assessor.name) == (0, "charlie")
    page.wait_for_function("() => document.querySelector('table.pairs tbody tr').textContent.includes('adjudicator')")
    page.get_by_role("button", name="Undo").press("Enter")
    page.get_by_text("Action undone.").wait_for()
    assert not CurrentJudgment.objects.filter(step="adjudication", item=None).exists()
    page.get_by_role("button", name="Send to people").last.press("Enter")
    page.get_by_text("Send to people: done").wait_for()
    assert Item.objects.filter(reason="requested", state="open", pair=judgment.pair_id).exists()
    page.get_by_placeholder("Note for the other admins").fill("Two readings.")
    page.keyboard.press("Enter")
    page.locator(".pair-acts li", has_text="Two readings.").wait_for()
    page.locator("#panel-h").focus()
    page.keyboard.press("Escape")
    assert page.locator("#pair-panel").is_hidden()
    assert page.evaluate("document.activeElement.closest('tr').rowIndex") == 1, "the focus is back in the list"


def test_a_filter_applies_at_once_and_columns_stay_as_they_were_chosen(charlie, new_page):
    page = new_page(user=charlie, **LIGHT)
    page.goto("/c/books/pairs/")
    page.get_by_text("More filters").click()
    page.get_by_label("Judged by").select_option("alice")
    page.wait_for_url("**/pairs/?person=alice")
    page.wait_for_function("() => document.querySelectorAll('table.pairs tbody tr').length === 1")
    page.keyboard.press("Escape")
    page.locator("#q").fill("nothing has this")
    page.get_by_text("No pair matches").wait_for()
    page.locator("#columns-menu summary").click()
    for column in ("From", "Reference", "Priority", "People"):
        button = page.locator("#columns-menu").get_by_role("button", name=column)
        pressed = button.get_attribute("aria-pressed")
        button.click()
        page.wait_for_function("([button, was]) => button.ariaPressed !== was", arg=[button.element_handle(), pressed])
    page.goto("/c/books/pairs/?person=alice")
    heads = page.locator("table.pairs thead th").all_inner_texts()
    assert heads[1:] == ["Query", "Document", "State", "Label", "People"]
    assert "alice" in page.locator("table.pairs tbody tr").inner_text()
