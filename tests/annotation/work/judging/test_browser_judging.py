"""Judging and adjudication in a real Chromium: keys, undo, skip, flag, comment, a tie, scripts as text, axe."""

from datetime import timedelta

import pytest
from django.utils import timezone

from annotation.models import Assignment, Role
from corpus.evidence.targets import newest_targets
from corpus.models import Item, Judgment, Label, Target
from tests.annotation.work.judging.open_desk import open_desk, settle
from tests.annotation.work.judging.test_evidence_pages import PROBLEM, failed_texts
from tests.factories import make_document, make_member, make_pair, make_query
from tests.judging_scene import make_scene
from tests.queue_scene import claim, submit
from tests.stages import first_quick

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def shown(page) -> int:
    """The item on the desk."""
    return Assignment.objects.get(public_id=page.locator("#desk").get_attribute("data-item")).item_id


def test_undo_skip_with_reason_flag_and_comment(collection, alice, new_page, instance):
    first, *_ = make_scene(collection, 4)
    page = open_desk(new_page, alice)

    page.keyboard.press("c")
    page.keyboard.type("typed 0")
    page.keyboard.press("Escape")
    settle(page, "1")
    judgment = Judgment.objects.get(item=first)
    assert (judgment.grade, judgment.comment) == (1, "typed 0")
    assert "Saved" in page.locator(".said").inner_text()

    settle(page, "u")
    assert shown(page) == first.pk
    assert page.locator("#comment-text").input_value() == "typed 0"
    settle(page, "0")
    assert list(Judgment.objects.filter(item=first).order_by("pk").values_list("grade", flat=True)) == [1, None, 0]

    here = shown(page)
    for key in "2345":  # no grades, and the reasons to skip are folded
        page.keyboard.press(key)
    page.wait_for_timeout(300)
    assert shown(page) == here and Assignment.objects.filter(item=here, state="open").exists()
    page.keyboard.press("s")
    settle(page, "3")
    skipped = Assignment.objects.get(item=here)
    assert (skipped.state, skipped.skip_reason) == ("skipped", "language")

    page.keyboard.press("f")
    page.keyboard.type("Two questions")
    here = shown(page)
    settle(page, "Control+Enter")
    flagged = Assignment.objects.get(item=here)
    assert (flagged.flagged, flagged.flag_note) == (True, "Two questions")
    assert Item.objects.get(pk=here).state == "conflict"
    assert shown(page) not in (here, first.pk)


def test_a_tie_is_adjudicated_without_names(collection, alice, new_page, violations, instance):
    (item,) = make_scene(collection, 1, overlap=2)
    bob = make_member(collection, "bob")
    charlie = make_member(collection, "charlie", Role.ADJUDICATOR)
    for member, grade in ((alice, 1), (bob, 0)):
        submit(member, claim(member), grade, comment=f"because {grade}")
    page = new_page(user=charlie.user)
    page.goto("/c/books/adjudicate/")
    opinions = page.locator(".opinions").inner_text()
    assert "because 1" in opinions and "because 0" in opinions and "alice" not in page.content()
    assert violations(page) == []
    settle(page, "0")
    label = Label.objects.get(pair=item.pair)
    assert (label.grade, label.origin) == (0, "adjudicator")
    page.wait_for_selector("[data-queue=empty]")
    settle(page, "u")
    assert Item.objects.get(pk=item.pk).state == "conflict"
    settle(page, "1")
    assert Label.objects.get(pair=item.pair).grade == 1
    assert violations(page) == []


def test_a_lost_lease_keeps_the_text_and_leads_on(collection, alice, new_page, console, instance):
    first, second = make_scene(collection, 2)
    page = open_desk(new_page, alice)
    page.keyboard.press("c")
    page.keyboard.type("a thought")
    page.keyboard.press("Escape")
    Item.objects.filter(pk=first.pk).update(state="settled")
    page.keyboard.press("1")
    page.wait_for_selector("#kept")
    assert page.locator("#kept").input_value() == "a thought"
    page.keyboard.press("1")
    page.wait_for_selector("#answer")
    assert shown(page) == second.pk and page.locator("#comment-text").input_value() == ""
    assert all("409" in line for line in console)
    console.clear()


def test_the_lease_is_mentioned_in_its_last_minute_only_and_can_be_kept(collection, alice, new_page, instance):
    make_scene(collection, 1)
    page = open_desk(new_page, alice)
    assert not page.locator("#lease").is_visible()
    Assignment.objects.update(lease_until=timezone.now() + timedelta(seconds=40))
    page.reload()
    page.locator("#lease").get_by_text("seconds left").wait_for()
    page.get_by_role("button", name="Keep working").click()
    page.wait_for_function("() => Number(document.querySelector('#desk').dataset.seconds) > 1000")
    assert not page.locator("#lease").is_visible()


@pytest.mark.parametrize("scheme", first_quick(["light", "dark"]))
def test_axe_finds_nothing_on_the_pages_of_judging(collection, alice, new_page, violations, instance, scheme):
    make_scene(collection, 3)
    page = new_page(user=alice.user, color_scheme=scheme)
    page.goto("/c/books/judge/")
    assert violations(page) == []
    page.keyboard.press("1")
    page.wait_for_selector("#answer")
    assert violations(page) == []
    page.keyboard.press("g")
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    assert violations(page) == []
    page.locator("#keys-on").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    assert not page.locator("#guidelines .panel").is_visible()
    assert page.evaluate("localStorage.getItem('quorum.keys')") == "off"
    page.evaluate("localStorage.removeItem('quorum.keys')")
    page.reload()
    settle(page, "1")
    page.keyboard.press("s")
    assert violations(page) == []
    page.goto("/c/books/judge/history/")
    assert violations(page) == []
    page.locator("tbody a").first.click()
    page.wait_for_selector(".given")
    assert violations(page) == []


def test_without_scripts_a_pair_is_settled_and_taken_back(collection, alice, new_page, instance):
    first, second = make_scene(collection, 2)
    page = new_page(user=alice.user, java_script_enabled=False)
    page.goto("/c/books/judge/")
    page.get_by_role("button", name="Start judging").click()
    page.locator("#comment > summary").click()
    page.locator("#comment-text").fill("manual")
    page.locator("#comment > summary").click()
    page.get_by_role("button", name="1 Relevant", exact=True).click()
    assert Judgment.objects.get(item=first).comment == "manual"
    page.get_by_role("button", name="Undo").first.click()
    number = page.locator("input[name=item]").first.get_attribute("value")
    assert Assignment.objects.get(public_id=number).item_id == first.pk
    page.locator("#skip > summary").click()
    page.locator("#skip .reason").first.click()
    assert Assignment.objects.get(item=first).state == "skipped"
    page.locator("#flag > summary").click()
    page.locator("#note").fill("odd")
    page.get_by_role("button", name="Flag and continue").click()
    assert Item.objects.get(pk=second.pk).state == "conflict"
    assert page.locator("[data-queue=empty]").is_visible()


GOOD = "Water boils at 100 °C at sea level."


def test_texts_are_edited_by_keyboard_and_taken_back(collection, new_page, violations, instance, console):
    query = make_query(collection, "When does water boil?", answers=[])
    for text in (
        "Water boils at 100 °C at sea level. Ice melts at 0 °C.",
        "Water boils sooner on mountains: at 93 °C.",
    ):
        failed_texts(make_pair(collection, query, make_document(collection, text)))
    page = new_page(user=make_member(collection, "alice").user)
    page.goto("/c/books/judge/")
    page.keyboard.press("1")
    page.wait_for_selector("#evidence")
    assert PROBLEM.capitalize() in page.locator(".texts .notice").inner_text()
    assert "101 °C <b>always" in page.locator("#evidence").input_value()
    assert violations(page) == []

    page.keyboard.press("e")
    assert page.evaluate("() => document.activeElement.id") == "evidence"
    page.keyboard.press("Control+A")
    page.keyboard.type("unfinished, 1")
    page.reload()
    assert page.locator("#evidence").input_value() == "unfinished, 1", "the draft came back"

    item = page.locator("#desk").get_attribute("data-item")
    page.locator("#evidence").fill(GOOD)
    page.keyboard.press("Control+Enter")
    page.wait_for_function("item => document.querySelector('#desk').dataset.item !== item", arg=item)
    assert newest_targets(collection).get().evidence == GOOD
    assert "101 °C <b>always" in page.locator("#evidence").input_value(), "the next pair's own text"

    page.keyboard.press("u")
    page.wait_for_function("item => document.querySelector('#desk').dataset.item === item", arg=item)
    assert not newest_targets(collection).exists()
    assert page.locator("#evidence").input_value() == GOOD
    page.keyboard.press("Escape")
    page.keyboard.press("1")
    page.wait_for_function("item => document.querySelector('#desk').dataset.item !== item", arg=item)
    assert newest_targets(collection).get().measures["milliseconds"] > 0
    page.keyboard.press("c")
    page.locator("#contribution").fill(" ")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#desk > .notice.error")
    assert "contribution" in page.locator("#desk > .notice.error").inner_text()
    assert Target.objects.filter(kind="person", good=True).count() == 2
    assert all("422" in line for line in console)
    console.clear()
