"""Every page within everybody's reach (WCAG 2.2 AA) in a real Chromium: both languages, light,
dark, high contrast, a narrow screen, right to left; by keyboard (focus: tests/site/test_browser_focus.py).
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client

from annotation.models import Role
from annotation.people.accounts.members import add_member
from benchmark.models import Synthesis, SyntheticBundle
from judges.models import JudgeVersion
from tests.admin_site import judged_collection
from tests.plugin_browser import COLOURS
from tests.site.test_permissions import World, routes

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

LOOKS = {
    "english-light": {"locale": "en", "color_scheme": "light"},
    "chinese-dark": {"locale": "zh-CN", "color_scheme": "dark"},
}
MORE_LOOKS = {
    "english-dark": {"locale": "en", "color_scheme": "dark"},
    "chinese-light": {"locale": "zh-CN", "color_scheme": "light"},
    "high-contrast-light": {"locale": "en", "color_scheme": "light", "contrast": "more"},
    "high-contrast-dark": {"locale": "en", "color_scheme": "dark", "contrast": "more"},
    "forced-colours": {"locale": "en", "color_scheme": "dark", "forced_colors": "active"},
}
NARROW = {"width": 320, "height": 640}
PHONE = {"width": 390, "height": 844}
WIDE = {"width": 1440, "height": 900}

GOLDEN = Path(__file__).parents[3] / "benchmark" / "synthesis" / "golden_bundle.json"
OPEN = "() => document.querySelectorAll('main details:not(.sheet)').forEach((one) => { one.open = true; })"

SHIFT = """
() => new Promise((done) => {
  // The sum of what moved by itself since the page was opened (Cumulative Layout Shift without its windows).
  let sum = 0;
  const add = (list) => list.getEntries().forEach((entry) => { if (!entry.hadRecentInput) sum += entry.value; });
  new PerformanceObserver(add).observe({ type: "layout-shift", buffered: true });
  requestAnimationFrame(() => setTimeout(() => done(sum), 50));
})
"""
WEIGHT = """
() => ["navigation", "resource"].flatMap((kind) => performance.getEntriesByType(kind))
  .reduce((sum, entry) => sum + entry.encodedBodySize, 0)
"""
SMALL = """
() => {
  // Targets smaller than 24 px that are neither in a sentence nor alone within 24 px (WCAG 2.5.8).
  const shown = (e) => e.getClientRects().length && getComputedStyle(e).visibility === "visible";
  const size = (e) => e.getBoundingClientRect();
  const tiny = (e) => Math.min(size(e).width, size(e).height) < 23.5 && size(e).width > 2;
  const inLine = (e) => getComputedStyle(e).display === "inline" || e.closest(".text");
  const inText = (e) => e.matches("a") && inLine(e);
  const all = "a[href], button, summary, select, input:not([type=hidden]), textarea";
  const targets = [...document.querySelectorAll(all)];
  const native = (e) => e.matches("input[type=checkbox], input[type=radio]") && e.closest("label");
  return targets.filter((e) => shown(e) && tiny(e) && !inText(e) && !native(e)).map((e) => e.outerHTML.slice(0, 120));
}
"""
UNREACHABLE = """
() => {
  // What acts on a click must be reached by Tab, in the order of the page.
  const shown = (e) => e.getClientRects().length;
  const all = "[hx-get], [hx-post], [role=button], [role=link], [data-copy], [popovertarget]";
  const acts = [...document.querySelectorAll(all)];
  const polls = (e) => /load|every|revealed/.test(e.getAttribute("hx-trigger") || "");
  const clicked = acts.filter((e) => shown(e) && !polls(e) && !e.matches("form, details"));
  const lost = clicked.filter((e) => e.tabIndex < 0 && !e.disabled);
  const jumps = [...document.querySelectorAll("[tabindex]")].filter((e) => e.tabIndex > 0);
  return [...lost, ...jumps].map((e) => e.outerHTML.slice(0, 120));
}
"""
OVERFLOW = """
() => {
  const room = document.documentElement.clientWidth;
  if (document.scrollingElement.scrollWidth <= room + 1) return [];
  const inside = (e) => e.closest(".table-scroll, .chart-scroll, pre, .panel, [popover]");
  return [...document.querySelectorAll("body *")]
    .filter((e) => !inside(e))
    .filter((e) => e.getBoundingClientRect().right > room + 1 || e.getBoundingClientRect().left < -1)
    .filter((e) => e.getClientRects().length && !e.closest(".visually-hidden, .skip-link"))
    .slice(0, 3).map((e) => e.outerHTML.slice(0, 120));
}
"""


@pytest.fixture
def world() -> World:
    made = World()
    books = judged_collection()
    for who, role in (("annotator", Role.ANNOTATOR), ("viewer", Role.VIEWER), ("owner", Role.ADMIN)):
        add_member(user=made.people[who], collection=books, role=role)
    web = {"model": "search", "provider": "tavily", "api_key_env": "TAVILY_API_KEY"}
    JudgeVersion.objects.create(name="web", parameters={"results": 5, "call_price": 0.008}, **web)
    SyntheticBundle.objects.update(bundle=json.loads(GOLDEN.read_text()))
    Synthesis.objects.update(state="ready")
    return made


def pages(world: World, who: str) -> Iterator[str]:
    """Addresses that answer this person with a page, each once."""
    client = Client()
    if who != "visitor":
        client.force_login(world.people[who])
        for name in ("birds", "books"):
            client.post(f"/c/{name}/judge/next/")
    seen: set[object] = set()
    for route in routes(world):
        for path in (route.path.replace("/birds/", "/books/"), route.path):
            answer = client.get(path)
            html = answer.headers.get("Content-Type", "").startswith("text/html") and b"<html" in answer.content
            key = (route.name, path.startswith("/c/books/")) if answer.status_code == 200 else answer.status_code
            if html and answer.status_code < 500 and key not in seen:
                seen.add(key)
                yield path


@pytest.mark.weekly
@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("who", ["visitor", "annotator", "viewer", "owner"])
def test_every_page_is_within_everybodys_reach(world, new_page, violations, console, instance, who, look):
    page = new_page(user=None if who == "visitor" else world.people[who], viewport=WIDE, **LOOKS[look])
    found: dict[str, list[str]] = {}
    for path in pages(world, who):
        page.set_viewport_size(WIDE)
        page.goto(path)
        shift, weight = page.evaluate(SHIFT), page.evaluate(WEIGHT)
        wrong = [f"shifts by {shift:.3f}"] * (shift > 0.01) + [f"weighs {weight} bytes"] * (weight > 150_000)
        wrong += [*violations(page), *page.evaluate(SMALL), *page.evaluate(UNREACHABLE)]
        page.emulate_media(color_scheme="dark", reduced_motion="reduce")
        wrong += [f"in the dark: {one}" for one in violations(page, *COLOURS)]
        page.emulate_media(color_scheme=LOOKS[look]["color_scheme"], reduced_motion="reduce")
        page.set_viewport_size(NARROW)
        wrong += [f"at 320 px: {one}" for one in violations(page)]
        wrong += [f"wider than 320 px: {one}" for one in page.evaluate(OVERFLOW)]
        page.evaluate("() => { document.documentElement.dir = 'rtl' }")
        wrong += [f"wider than 320 px, right to left: {one}" for one in page.evaluate(OVERFLOW)]
        if wrong:
            found[path] = wrong
    console[:] = [line for line in console if "Failed to load resource" not in line]  # pages that say 4xx
    assert found == {}


@pytest.mark.weekly
@pytest.mark.parametrize("look", MORE_LOOKS)
@pytest.mark.parametrize("who", ["annotator", "owner"])
def test_axe_finds_nothing_on_any_page_in_any_look(world, new_page, violations, console, instance, who, look):
    page = new_page(user=world.people[who], viewport=WIDE, **MORE_LOOKS[look])
    found: dict[str, list[str]] = {}
    for path in pages(world, who):
        page.set_viewport_size(WIDE)
        page.goto(path)
        wrong = violations(page)
        page.set_viewport_size(PHONE)
        page.evaluate(OPEN)
        if wrong := [*wrong, *(f"at 390 px: {one}" for one in violations(page))]:
            found[path] = wrong
    console[:] = [line for line in console if "Failed to load resource" not in line]  # pages that say 4xx
    assert found == {}


# --- Keyboard -------------------------------------------------------------------------------------------

STOPS = """
() => {
  // Radio buttons of one name are one stop; the parts of a date are more than one.
  const all = "a[href], button:not([disabled]), input:not([type=hidden], [disabled]), select, textarea, summary, "
    + "[tabindex='0']";
  const stops = [...document.querySelectorAll(all)]
    .filter((e) => e.getClientRects().length && e.tabIndex >= 0)
    .filter((e) => !e.closest("details:not([open]) > :not(summary)"));
  return new Set(stops.map((e) => (e.type === "radio" ? `${e.form && e.form.action} ${e.name}` : e))).size;
}
"""
MOVED = """
() => {
  const moved = document.activeElement !== window.stoodAt;
  window.stoodAt = document.activeElement;
  return moved;
}
"""
VISIBLE_FOCUS = """
() => {
  const at = document.activeElement;
  const style = getComputedStyle(at);
  const outlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
  const own = at === document.body || at.type === "checkbox" || at.type === "radio";
  return outlined || own ? "" : at.outerHTML.slice(0, 120);
}
"""


ELSEWHERE = ["/c/books/members/", "/c/books/campaigns/", "/accounts/"]


@pytest.mark.parametrize(
    "path", ["/c/books/judge/", "/c/books/", *(pytest.param(path, marks=pytest.mark.weekly) for path in ELSEWHERE)]
)
def test_tab_reaches_everything_that_can_be_done_and_always_shows_where_it_is(world, new_page, instance, path):
    page = new_page(user=world.people["owner"])
    page.goto(path)
    want = page.evaluate(STOPS)
    unseen, reached = [], 0
    for _ in range(2 * want):
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement === document.body"):
            break
        reached += page.evaluate(MOVED)
        if wrong := page.evaluate(VISIBLE_FOCUS):
            unseen.append(wrong)
    assert unseen == []
    assert reached >= want


def test_high_contrast_is_a_setting_that_the_next_page_shows(world, new_page, instance):
    page = new_page(user=world.people["annotator"])
    page.goto("/accounts/")
    light = page.evaluate("() => getComputedStyle(document.body).color")
    page.get_by_label("Contrast").select_option("more")
    page.locator("form:has(#contrast) button").click()
    page.locator("html[data-contrast=more]").wait_for(state="attached")
    assert page.evaluate("() => getComputedStyle(document.body).color") == "rgb(0, 0, 0)" != light


def test_nothing_moves_where_reduced_motion_is_asked_for(world, new_page, instance):
    page = new_page(user=world.people["owner"], reduced_motion="reduce")
    page.goto("/c/books/")
    assert page.evaluate("() => document.getAnimations().length") == 0
    assert page.evaluate("() => getComputedStyle(document.documentElement).scrollBehavior") == "auto"
