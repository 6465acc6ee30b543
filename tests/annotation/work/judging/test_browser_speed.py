"""The judging page is quick and light: from a key to the next pair, and what a first visit loads."""

from statistics import median, quantiles
from typing import Any

import pytest

from tests.annotation.work.judging.open_desk import open_desk
from tests.factories import make_member
from tests.judging_scene import make_scene
from tests.speed import slowness

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
PAIRS, WARM = 40, 5  # Pairs that are judged, and how many of them come before the measuring.
MOST_MS, MOST_KB, MOST_REQUESTS, MOST_SHIFT = 100, 60, 6, 0.01

WATCH = """
() => {
  // From the press to the frame after the one that has the next pair in it.
  let pressed = 0;
  window.took = [];
  const shown = () => document.querySelector("#desk").dataset.item;
  let item = shown();
  addEventListener("keydown", () => { pressed = performance.now(); }, { capture: true });
  new MutationObserver(() => {
    if (shown() === item) return;
    item = shown();
    requestAnimationFrame(() => setTimeout(() => window.took.push(performance.now() - pressed)));
  }).observe(document.body, { subtree: true, childList: true, attributes: true, attributeFilter: ["data-item"] });
  window.shift = 0;
  const add = (entry) => { if (!entry.hadRecentInput) window.shift += entry.value; };
  new PerformanceObserver((list) => list.getEntries().forEach(add)).observe({ type: "layout-shift", buffered: true });
}
"""


@pytest.fixture
def alice(collection):
    make_scene(collection, PAIRS + 2)
    return make_member(collection, "alice")


def test_from_a_key_to_the_next_pair_is_under_100_ms(alice, new_page, instance):
    page = open_desk(new_page, alice)
    page.evaluate(WATCH)
    for number in range(PAIRS):
        page.wait_for_timeout(450)  # The buttons rest for 400 ms after a pair arrived.
        page.keyboard.press("10"[number % 2])
        page.wait_for_function("n => window.took.length > n", arg=number)
    took = page.evaluate("() => window.took")[WARM:]
    shift, slower = page.evaluate("() => window.shift"), slowness()
    told = f"p50 {median(took):.0f} ms, p95 {quantiles(took, n=20)[-1]:.0f} ms, layout shift {shift:.4f}"
    print(f"\nkey to next pair: {told}; the machine is {slower:.1f} times as slow as an ordinary one")
    assert median(took) < MOST_MS * slower
    assert shift <= MOST_SHIFT


def test_a_first_visit_loads_at_most_60_kb_in_6_requests(alice, new_page, instance):
    open_desk(new_page, alice)
    fresh = new_page(user=alice.user)
    asked: list[Any] = []
    fresh.on("requestfinished", lambda request: asked.append(request))
    fresh.goto("/c/books/judge/")
    fresh.wait_for_load_state("networkidle")
    sizes = {one.url: one.sizes() for one in asked}
    kilobytes = sum(one["responseBodySize"] + one["responseHeadersSize"] for one in sizes.values()) / 1000
    print(f"\njudging page: {kilobytes:.1f} kB, {len(asked)} requests")
    assert fresh.locator("#answer").count() == 1, "a pair is on the page"
    assert kilobytes <= MOST_KB and len(asked) <= MOST_REQUESTS, sizes
