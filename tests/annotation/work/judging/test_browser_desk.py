"""The desk in a real Chromium: own evidence, words of the query, drafts, lost connections, own keys, whole queries."""

import json
import re

import pytest

from annotation.models import Assignment
from corpus.models import Item, Judgment
from tests.annotation.work.judging.open_desk import open_desk, settle
from tests.factories import make_document, make_item, make_pair, make_query
from tests.instances import until
from tests.judging_scene import make_scene

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

TEXT = "A mapping maps hashable values. It is mutable. “Dictionaries” are 映射, and mapping 😀 types too."


def select(page, words: str) -> None:
    """Select words of the document, as a mouse would."""
    page.evaluate(
        """words => {
            const walker = document.createTreeWalker(document.querySelector('.document .text'), NodeFilter.SHOW_TEXT);
            for (let node = walker.nextNode(); node; node = walker.nextNode()) {
                const at = node.data.indexOf(words);
                if (at >= 0) return getSelection().setBaseAndExtent(node, at, node, at + words.length);
            }
        }""",
        words,
    )


def painted(page, name: str) -> list[str]:
    return page.evaluate("name => [...(CSS.highlights.get(name) ?? [])].map(range => range.toString())", name)


def test_words_are_lit_and_sentences_and_selections_are_kept_as_characters_of_the_document(collection, alice, new_page):
    query = make_query(collection, "Is a mapping mutable? 映射")
    make_item(make_pair(collection, query, make_document(collection, TEXT)))
    page = open_desk(new_page, alice)
    assert painted(page, "term") == []
    page.keyboard.press("t")
    assert sorted(painted(page, "term")) == ["mapping", "mapping", "maps", "mutable", "映射"]
    page.keyboard.press("t")
    assert painted(page, "term") == []
    # By keyboard alone; a sentence that is marked again is taken away.
    page.keyboard.press("e")
    assert painted(page, "sentence") == ["A mapping maps hashable values. "]
    page.keyboard.press("j")
    page.keyboard.press("e")
    assert page.locator(".own q").all_inner_texts() == ["It is mutable."]
    page.keyboard.press("e")
    assert page.locator(".own").is_hidden()
    page.keyboard.press("Escape")
    assert painted(page, "sentence") == []
    for words in ("It is mutable. ", "mapping 😀 types"):
        select(page, words)
        page.keyboard.press("e")
    assert page.locator(".own q").all_inner_texts() == ["It is mutable.", "mapping 😀 types"]
    assert painted(page, "own") == ["It is mutable.", "mapping 😀 types"]
    settle(page, "1")
    spans = Judgment.objects.get().spans
    assert [TEXT[start:end] for start, end in spans] == ["It is mutable.", "mapping 😀 types"]


def test_quotes_lead_to_their_sentences_and_back_and_are_marked_as_evidence_without_labels(collection, alice, new_page):
    make_scene(collection, 1)
    page = open_desk(new_page, alice)
    page.locator(".quotes a").first.click()
    assert page.locator("mark.lit").first.get_attribute("data-quotes").split()[0] == "F1"
    page.keyboard.press("d")
    assert page.evaluate("document.activeElement.id") == "debate"
    assert page.locator(".missing").is_visible()
    page.keyboard.press("j")
    quoted = page.evaluate("[...document.querySelectorAll('.document mark.lit')].map(m => m.innerText).join('')")
    page.keyboard.press("e")
    settle(page, "1")
    judgment = Judgment.objects.select_related("pair__document").get()
    ((start, end),) = judgment.spans
    assert judgment.pair.document.text[start:end] == re.sub(r"[FA]\d", "", quoted).strip()


def test_what_is_typed_outlives_reload_another_device_and_a_lost_lease(collection, alice, new_page):
    make_scene(collection, 2)
    page = open_desk(new_page, alice)
    page.keyboard.press("c")
    with page.expect_response("**/judge/draft/") as kept:
        page.keyboard.type("half a thought")
    assert kept.value.json() == {"kept": True}
    assert Assignment.objects.get(state="open").draft == {"comment": "half a thought"}
    page.reload()
    assert page.locator("#comment-text").input_value() == "half a thought"
    other = new_page(user=alice.user)
    other.goto("/c/books/judge/")
    assert other.locator("#comment-text").input_value() == "half a thought"
    Assignment.objects.filter(state="open").update(state="returned")
    Item.objects.filter(taken=1).update(taken=0)
    page.goto("/c/books/judge/")
    page.keyboard.press("1")
    page.wait_for_selector("#answer")
    first = Assignment.objects.get(draft__isnull=False)
    if Assignment.objects.get(state="open").pk != first.pk:  # the other pair came first: settle it
        settle(page, "1")
    assert page.locator("#comment-text").input_value() == "half a thought"


def test_an_answer_without_connection_or_site_arrives_once_these_are_back_and_counts_once(
    collection, alice, new_page, console
):
    make_scene(collection, 3)
    page = open_desk(new_page, alice)
    item = page.locator("#desk").get_attribute("data-item")
    page.keyboard.press("c")
    page.keyboard.type("half a thought")
    page.keyboard.press("Escape")
    page.context.set_offline(True)
    page.keyboard.press("1")
    page.wait_for_function("() => !document.querySelector('#trouble').hidden")
    assert "kept" in page.locator("#trouble").inner_text()
    assert not Judgment.objects.exists()
    page.context.set_offline(False)
    page.wait_for_function("item => document.querySelector('#desk').dataset.item !== item", arg=item)
    assert Judgment.objects.get().comment == "half a thought"
    assert page.locator("#comment-text").input_value() == ""
    page.wait_for_function("() => document.querySelector('#trouble').hidden")
    assert any("DISCONNECTED" in line for line in console)
    page.route("**/submit/", lambda route: route.fulfill(status=503, body="away"), times=1)
    item = page.locator("#desk").get_attribute("data-item")
    page.keyboard.press("1")
    page.wait_for_selector("#trouble:not([hidden])")
    assert "not responding" in page.locator("#trouble").inner_text() and Judgment.objects.count() == 1
    page.wait_for_function("item => document.querySelector('#desk').dataset.item !== item", arg=item)
    assert Judgment.objects.count() == 2 and "503" in console[-1]
    console.clear()


def test_a_key_right_after_a_swap_is_sent_like_any_other(collection, alice, new_page):
    """What a swap brings is ready at once: else a quick key sends its form without HTMX and loads the whole page."""
    make_scene(collection, 3)
    page = open_desk(new_page, alice)
    page.evaluate("""
    () => {
        window.same = true;
        const again = () => setTimeout(() => document.querySelector(".grade").click(), 0);
        document.addEventListener("htmx:afterSwap", again, { once: true });
    }
    """)
    item = page.locator("#desk").get_attribute("data-item")
    page.keyboard.press("1")
    page.wait_for_function("item => document.querySelector('#desk').dataset.item !== item", arg=item)
    until(lambda: Judgment.objects.count() == 2)
    page.wait_for_timeout(300)
    assert Judgment.objects.count() == 2
    assert page.evaluate("() => window.same") is True


def test_a_key_is_changed_named_everywhere_and_kept(collection, alice, new_page):
    make_scene(collection, 3)
    page = open_desk(new_page, alice)
    page.keyboard.press("?")
    page.locator("#help kbd[role=button]", has_text="u").first.click()
    page.keyboard.press("z")
    assert json.loads(page.evaluate("localStorage.getItem('quorum.keymap')")) == {"u": "z"}
    page.keyboard.press("Escape")
    settle(page, "1")
    assert "z" in page.locator("#answer [data-key=u] kbd").inner_text()
    page.keyboard.press("u")
    page.wait_for_timeout(200)
    assert Judgment.objects.count() == 1
    settle(page, "z")
    assert Judgment.objects.filter(grade=None).count() == 1
    page.reload()
    page.keyboard.press("?")
    page.locator("#keys-reset").click()
    assert page.evaluate("localStorage.getItem('quorum.keymap')") is None


def test_hidden_time_is_idle_time_and_a_reload_loses_none(collection, alice, new_page):
    make_scene(collection, 1)
    page = open_desk(new_page, alice)
    page.wait_for_timeout(400)
    page.reload()
    page.wait_for_selector("#answer")
    hide = """value => {
        Object.defineProperty(document, 'hidden', { value, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'));
    }"""
    page.evaluate(hide, True)
    page.wait_for_timeout(500)
    page.evaluate(hide, False)
    settle(page, "1")
    judgment = Judgment.objects.get()
    assert 450 <= judgment.idle_milliseconds < judgment.milliseconds
    assert judgment.milliseconds >= 900


def test_a_whole_query_is_judged_with_one_key_for_each_document(collection, alice, new_page, violations):
    query = make_query(collection, "Which types map?")
    for number in range(5):
        make_item(make_pair(collection, query, make_document(collection, f"Type {number}. {TEXT}")))
    make_item(make_pair(collection, make_query(collection, "Another?"), make_document(collection, "Another text.")))
    page = new_page(user=alice.user)
    page.goto("/c/books/judge/query/")
    page.keyboard.press("1")
    page.wait_for_selector(".pair-card.current")
    assert page.locator(".pair-card").count() == 5
    assert violations(page) == []
    for number, key in enumerate("10110", 1):
        page.keyboard.press(key)
        page.wait_for_function("n => document.querySelectorAll('.pair-card.settled').length === n", arg=number)
    assert sorted(Judgment.objects.values_list("grade", flat=True)) == [0, 0, 1, 1, 1]
    assert page.locator("#progress").inner_text() == "5 of 5 judged"
    page.keyboard.press("u")
    page.wait_for_function("() => document.querySelectorAll('.pair-card.settled').length === 4")
    page.keyboard.press("1")
    page.wait_for_function("() => document.querySelectorAll('.pair-card.settled').length === 5")
    page.keyboard.press("n")
    page.wait_for_selector("text=Another?")
    plain = new_page(user=alice.user, java_script_enabled=False)
    plain.goto("/c/books/judge/query/")
    plain.locator(".pair-card .grade").first.click()
    plain.wait_for_load_state("load")
    assert plain.locator(".pair-card").count() == 0 and Judgment.objects.filter(pair__query__text="Another?").exists()
