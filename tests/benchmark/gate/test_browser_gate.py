"""The gate in a real Chromium: the form, what decides, the history; axe in light, dark, on a phone, at 320 px."""

import pytest

from annotation.models import Role
from benchmark.models import Gate
from judges.panels.offline_panel import ensure_offline
from tests.benchmark.gate.test_gate import books as books
from tests.benchmark.gate.test_gate import decide
from tests.factories import make_member
from tests.looks import EACH_LOOK, LOOKS, SIDEWAYS

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.mark.parametrize("look", EACH_LOOK)
def test_a_verdict_is_told_and_what_decides_is_judged(new_page, violations, live_site, books, look):
    ensure_offline()
    charlie = make_member(books, "charlie", Role.ADMIN)
    found: dict[str, list[str]] = {}
    page = new_page(user=charlie.user, **LOOKS[look])

    def look_at(name: str) -> None:
        page.evaluate("document.querySelectorAll('main details').forEach(part => { part.open = true })")
        found[name] = violations(page) + (["wide"] if page.evaluate(SIDEWAYS) else [])
        size = page.viewport_size
        page.set_viewport_size({"width": 320, "height": 700})
        found[name] += ["wide at 320"] if page.evaluate(SIDEWAYS) else []
        page.set_viewport_size(size)

    page.goto(f"{live_site}/c/books/benchmark/gate/")
    page.locator("#id_against").select_option("old")
    page.locator("#id_measures").fill("nDCG@3 P@1")
    look_at("form")
    page.get_by_role("button", name="Compare").click()
    page.locator(".badge.warn").first.wait_for()
    assert page.locator(".badge.warn").count() >= 2
    look_at("cannot tell")
    page.locator("#judge_policy").select_option("people")
    page.get_by_role("button", name="Have them judged").click()
    look_at("estimate")
    page.get_by_role("button", name="Start now").click()
    look_at("in judging")
    decide(books, "bad", measures="nDCG@3 AP")
    page.goto(f"{live_site}/c/books/benchmark/gate/{Gate.objects.count()}/")
    look_at("fail")
    page.goto(f"{live_site}/c/books/benchmark/gate/")
    look_at("history")
    assert {name: problems for name, problems in found.items() if problems} == {}
