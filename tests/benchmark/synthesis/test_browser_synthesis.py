"""The pages of syntheses in a real Chromium: axe in light, dark and on a phone; a start by keyboard alone."""

import json
from pathlib import Path

import pytest

from annotation.models import Role
from benchmark.models import Synthesis, SyntheticBundle
from tests.factories import make_collection, make_document, make_member, make_query
from tests.looks import EACH_LOOK, LOOKS, SIDEWAYS

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True), pytest.mark.slow]
GOLDEN = Path(__file__).with_name("golden_bundle.json")
HOME = "/c/steel/benchmark/synthesis/"


@pytest.mark.parametrize("look", EACH_LOOK)
def test_a_synthesis_is_started_by_keyboard_and_no_page_has_a_violation(new_page, violations, look):
    steel = make_collection("steel")
    for number in range(3):
        make_document(steel, f"Slab {number} cracks when its skin cools. It is held by core {number}.")
        make_query(steel, f"why does slab {number} crack", external_id=f"q{number}")
    alice = make_member(steel, "alice", Role.ADMIN)
    page = new_page(user=alice.user, **LOOKS[look])
    page.set_default_timeout(30_000)
    found, wide = {}, []

    def look_at(name):
        page.evaluate("document.querySelectorAll('main details').forEach((one) => { one.open = true; })")
        found[name] = violations(page)
        if page.evaluate(SIDEWAYS):
            wide.append(name)

    page.goto(HOME)
    look_at("list")
    page.locator("#id_limit").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Start now")
    look_at("estimate")
    page.get_by_role("button", name="Start now").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("h1:has-text('Synthesis')")
    SyntheticBundle.objects.update(bundle=json.loads(GOLDEN.read_text()))
    Synthesis.objects.update(state="ready")
    page.goto(f"{HOME}{Synthesis.objects.get().number}/")
    look_at("synthesis")
    page.get_by_role("link", name="Why does a plate").first.click()
    page.wait_for_selector("text=Must not provide")
    look_at("bundle")
    for kind in ("keywords", "ask"):
        page.goto(f"{HOME}?type={kind}")
        look_at(kind)
    written = {"query_id": "synthetic-1", "query": "slab cracks", "asked_of": "d", "synthetic": True}
    SyntheticBundle.objects.update(bundle=written)
    Synthesis.objects.update(kind="ask", options={"judge": "offline-rewriter", "pairs": 2, "seed": 0})
    page.goto(f"{HOME}{Synthesis.objects.get().number}/")
    page.wait_for_selector("h2:has-text('Written queries')")
    look_at("written queries")
    assert found == {key: [] for key in found} and wide == []
