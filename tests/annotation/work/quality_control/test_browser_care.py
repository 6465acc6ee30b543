"""Care in a real Chromium: consent, practice, test and gold by keyboard, adjudication, the admin's pages."""

import pytest
from django.utils import timezone

from annotation.models import Assignment, Membership, Role
from annotation.models.quality_control import Consent, GoldAnswer, GoldExplanation
from annotation.work.quality_control import consent, gold, qualification
from corpus.models import Assessor, Item, Judgment, Label
from judges.models import Campaign
from tests.factories import make_document, make_member, make_pair, make_query
from tests.judging_scene import TEXT, debating_campaign, escalate, make_scene

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def press(page, key: str) -> None:
    """Press a key and wait until the desk was swapped. A pair that has just arrived takes no answer for 400 ms."""
    page.wait_for_timeout(450)
    page.evaluate("() => { document.querySelector('#desk').dataset.old = '1'; }")
    page.keyboard.press(key)
    page.wait_for_function("() => document.querySelector('#desk') && !document.querySelector('#desk').dataset.old")


def known_pairs(collection, count: int) -> None:
    """Gold pairs about which the judges debated."""
    campaign = Campaign.objects.filter(collection=collection).first() or debating_campaign(collection)
    reference = Assessor.objects.create(collection=collection, kind="reference", name="gold")
    for number in range(count):
        query = make_query(collection, f"In which order, number {number}?", answers=["As inserted."])
        pair = make_pair(collection, query, make_document(collection, TEXT, title="Mapping types"))
        escalate(campaign, pair).delete()
        Judgment.objects.create(pair=pair, assessor=reference, step="import", grade=number % 2)


def test_a_newcomer_agrees_practises_passes_and_judges_by_keyboard_alone(collection, new_page, violations, instance):
    make_scene(collection, 2)
    known_pairs(collection, 8)
    qualification.make_test(collection=collection, size=3, seed=1, by=None)
    practice = Item.objects.filter(priority__lt=0).values_list("pair", flat=True)
    GoldExplanation.objects.bulk_create(GoldExplanation(pair_id=pair, text="Because it is so.") for pair in practice)
    alice = make_member(collection, "alice")
    consent.write(collection=collection, text=consent.DEFAULT, by=alice.user)
    page = new_page(user=alice.user)
    page.goto("/c/books/judge/")
    assert violations(page) == []
    press(page, "1")
    assert Consent.objects.get().membership == alice
    assert violations(page) == []
    for _ in range(5):
        press(page, "1")
        page.wait_for_selector("#answer")
        press(page, "1")
        page.wait_for_selector("[data-queue=practice]")
    assert "Because it is so." in page.locator("#desk").inner_text()
    assert violations(page) == []
    press(page, "1")
    for _ in range(3):
        lease = Assignment.objects.select_related("item").get(state="open")
        truth = Judgment.objects.get(pair=lease.item.pair_id, assessor__kind="reference").grade
        press(page, str(truth))
    page.wait_for_selector("[data-queue=passed]")
    assert violations(page) == []
    passed = Membership.objects.values("qualified_at", "failed_at").get(pk=alice.pk)
    Membership.objects.filter(pk=alice.pk).update(qualified_at=None, failed_at=timezone.now())
    page.reload()
    page.wait_for_selector("[data-queue=failed]")
    assert violations(page) == []
    page.get_by_role("button", name="Ask to retake").click()
    page.wait_for_selector("text=You asked to take the test again")
    assert violations(page) == []
    Membership.objects.filter(pk=alice.pk).update(**passed, retake_asked_at=None)
    page.goto("/c/books/judge/")
    press(page, "1")
    for _ in range(2):
        press(page, "1")
    page.wait_for_selector("[data-queue=empty]")
    assert Label.objects.filter(origin="people").count() == 2


@pytest.mark.slow
def test_an_expert_makes_gold_by_keyboard(collection, new_page, violations, instance):
    for number in range(8):
        query = make_query(collection, f"In which order, number {number}?", answers=["In insertion order."])
        make_pair(collection, query, make_document(collection, TEXT, title="Mapping types"))
    gold.draw(collection=collection, size=3, seed=1, spot=1, by=None)
    alice = make_member(collection, "alice")
    Membership.objects.filter(pk=alice.pk).update(is_expert=True)
    page = new_page(user=alice.user)
    page.goto("/c/books/gold/grade/")
    assert violations(page) == []
    for number in range(8):
        press(page, "10"[number % 2])
    page.wait_for_selector("[data-queue=empty]")
    assert GoldAnswer.objects.count() == 8
    carol = make_member(collection, "carol", Role.ADJUDICATOR)
    page = new_page(user=carol.user, **PHONE)
    page.goto("/c/books/gold/review/")
    page.get_by_role("button", name="Not relevant").tap()
    page.wait_for_function("() => document.querySelector('#desk')")
    assert violations(page) == []
