"""Hostile text in a real Chromium: pair pages and judging pages of every injection stay whole, wide or narrow."""

import pytest

from annotation.models import User
from corpus.models import Pair
from judges.probes.injections import INJECTIONS
from tests.hostile_scene import TEXTS, hostile_collection
from tests.plugin_browser import NewPage

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True), pytest.mark.slow]

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
LOOK = """() => {
    const text = document.querySelector('.document .text').cloneNode(true);
    text.querySelectorAll('a.tag').forEach(tag => tag.remove());
    const root = document.documentElement;
    return {
        text: text.textContent,
        hacked: 'hacked' in window,
        title: document.title,
        images: document.images.length,
        scripts: [...document.scripts].filter(script => !script.src).length,
        wide: root.scrollWidth - root.clientWidth,
        direction: getComputedStyle(document.body).direction,
    };
}"""


def check(found: dict, pair: Pair) -> None:
    """The document is whole; nothing ran, nothing was loaded, nothing sticks out, and the page reads left to right."""
    assert found.pop("text") == pair.document.text
    assert "yes" not in found.pop("title")
    assert found == {"hacked": False, "images": 0, "scripts": 0, "wide": 0, "direction": "ltr"}, pair.document.text[:80]


def test_no_text_breaks_a_page_in_the_browser(new_page: NewPage, instance: dict[str, str]) -> None:
    """0 broken pages of 2 for each text."""
    assert len(INJECTIONS) >= 40
    hostile_collection()
    pairs = {pair.document_id: pair for pair in Pair.objects.select_related("document").order_by("pk")}
    page = new_page(user=User.objects.get(username="charlie"))
    for pair in pairs.values():
        page.goto(f"/c/books/pairs/{pair.pk}/")
        check(page.evaluate(LOOK), pair)
    by_text = {pair.document.text: pair for pair in pairs.values()}
    page = new_page(user=User.objects.get(username="alice"), **PHONE)
    page.goto("/c/books/judge/")
    page.click("text=Start judging")
    for _ in TEXTS:
        page.wait_for_selector("#answer")
        found = page.evaluate(LOOK)
        check(found.copy(), by_text.pop(found["text"]))
        for grade in page.locator("#answer button[name=grade]").all():
            assert grade.is_visible() and grade.bounding_box()["y"] < 844
        token = page.locator("#desk").get_attribute("data-item")
        page.locator("#answer button[name=grade]").first.click()
        page.wait_for_function("item => (document.querySelector('#desk').dataset.item ?? null) !== item", arg=token)
    assert by_text == {}
