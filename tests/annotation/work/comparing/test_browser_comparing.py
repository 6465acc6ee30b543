"""Comparing in a real Chromium: by keys alone, how quickly the next comparison comes, and within everybody's reach."""

from concurrent.futures import ThreadPoolExecutor
from statistics import median, quantiles
from typing import Any

import pytest
from django.db import connection

from annotation.models import Role
from annotation.models.comparisons import Comparison, Preference
from annotation.work.comparing import services
from corpus.models import Collection
from judges.panels.offline_panel import ensure_offline
from tests.annotation.work.comparing.judged_scene import begin, judged, make_set, vote
from tests.comparing_scene import draw, make_relevant, prefer
from tests.factories import make_collection, make_member
from tests.instances import until
from tests.judging_scene import TEXT
from tests.looks import check_looks
from tests.speed import slowness

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
COMPARISONS, WARM, MOST_MS = 40, 5, 100
SHOWN = "document.querySelector('.comparison:not([hidden])')?.dataset.comparison"
WATCH = """
() => {
  // From the press to the frame after the one that shows the next comparison.
  let pressed = 0;
  window.took = [];
  const shown = () => document.querySelector(".comparison:not([hidden])")?.dataset.comparison;
  let comparison = shown();
  addEventListener("keydown", () => { pressed = performance.now(); }, { capture: true });
  new MutationObserver(() => {
    if (!shown() || shown() === comparison) return;
    comparison = shown();
    requestAnimationFrame(() => setTimeout(() => window.took.push(performance.now() - pressed)));
  }).observe(document.body, { subtree: true, childList: true, attributes: true, attributeFilter: ["hidden"] });
}
"""


@pytest.fixture
def collection() -> Collection:
    return make_collection("books", title="Python's reference", min_judgment_ms=300)


def press(page: Any, key: str) -> None:
    """Press a key once the buttons have rested, and wait for another comparison or the end."""
    page.wait_for_timeout(450)
    before = page.evaluate(SHOWN)
    page.keyboard.press(key)
    page.wait_for_function(f"before => ({SHOWN}) !== before", arg=before)


def test_a_set_is_answered_and_undone_by_keys(collection, alice, new_page, instance):
    make_relevant(collection, queries=2, documents=3, text=TEXT)
    drawn = draw(collection)
    page = new_page(user=alice.user)
    page.goto("/c/books/compare/")
    page.keyboard.press("1")
    page.wait_for_selector("#answer")
    for key in ("ArrowLeft", "2", "e", "b", "="):
        press(page, key)
    until(lambda: Preference.objects.count() == 5)
    assert page.locator("#answered").inner_text() == "5" and page.locator("#total").inner_text() == "6"
    page.keyboard.press("u")
    page.wait_for_function("document.querySelector('#answered').textContent === '4'")
    assert page.evaluate(SHOWN) == "5"
    # A second press right after the first is ignored.
    page.wait_for_timeout(450)
    page.keyboard.press("1")
    page.keyboard.press("1")
    assert "Ignored" in page.locator("#too-fast").inner_text()
    page.wait_for_timeout(450)
    page.keyboard.press("ArrowRight")
    page.get_by_text("You answered 6 comparisons.").wait_for()
    answers = [Preference.objects.filter(comparison=row).latest("pk") for row in drawn.comparisons.order_by("seq")]
    left = [row.outcome == ("second" if row.swapped else "first") for row in answers]
    assert left == [True, False, False, False, True, False]
    assert [row.outcome for row in answers[2:4]] == ["equal", "both_bad"]
    assert all((row.seconds or 0) > 0.3 for row in answers)


@pytest.mark.slow
def test_from_a_key_to_the_next_comparison_is_under_100_ms(collection, alice, new_page, instance):
    make_relevant(collection, queries=COMPARISONS // 3 + 1, documents=3, text=TEXT)
    draw(collection)
    services.claim(alice)
    page = new_page(user=alice.user)
    page.goto("/c/books/compare/")
    page.evaluate(WATCH)
    for number in range(COMPARISONS):
        page.wait_for_timeout(450)
        page.keyboard.press("12eb"[number % 4])
        page.wait_for_function("n => window.took.length > n", arg=number)
    took, slower = page.evaluate("() => window.took")[WARM:], slowness()
    print(
        f"\nkey to next comparison: p50 {median(took):.0f} ms, p95 {quantiles(took, n=20)[-1]:.0f} ms; "
        f"the machine is {slower:.1f} times as slow as an ordinary one"
    )
    assert median(took) < MOST_MS * slower
    until(lambda: Preference.objects.count() == COMPARISONS)


def test_an_answer_without_a_connection_is_sent_when_it_is_back(collection, alice, new_page, instance, console):
    make_relevant(collection, documents=4)
    draw(collection)
    services.claim(alice)
    page = new_page(user=alice.user)
    page.goto("/c/books/compare/")
    page.context.set_offline(True)
    press(page, "1")
    page.get_by_text("No connection.").wait_for()
    assert not Preference.objects.exists()
    page.context.set_offline(False)
    until(lambda: Preference.objects.count() == 1)
    press(page, "2")
    until(lambda: Preference.objects.count() == 2)
    console[:] = [message for message in console if "ERR_INTERNET_DISCONNECTED" not in message]


def test_the_pages_are_within_reach_in_every_look(collection, alice, new_page, violations, instance):
    make_relevant(collection, queries=2, documents=3, text=TEXT)
    drawn = draw(collection, people=2)
    ada = make_member(collection, "ada", Role.ADMIN)
    for row in Comparison.objects.filter(set=drawn, seq__lte=4):
        prefer(row, alice.assessor, "first")
        prefer(row, ada.assessor, "equal")
    services.claim(ada)
    home = "/c/books/comparisons/"
    check_looks(new_page, violations, ada.user, ["/c/books/compare/", home, f"{home}1/"])


def test_the_pages_of_judges_are_within_reach_in_every_look(new_page, violations, instance):
    maps = make_set()
    ada = make_member(maps.collection, "ada", Role.ADMIN)
    ensure_offline()
    vote(maps, "alice", {1: "first", 2: "second", 3: "equal", 5: "both_bad"})
    # In a thread of its own, since the browser's driver runs an event loop in this one.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(judged, maps, "offline-answers", "offline-bm25", "offline-ngrams").result()
        pool.submit(lambda: connection.close()).result()
    begin(maps, "offline-coverage")
    home = "/c/maps/comparisons"
    check_looks(new_page, violations, ada.user, [f"{home}/1/", f"{home}/judges/?set=1", f"{home}/judges/1/"])
