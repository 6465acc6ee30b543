"""Without a mouse: from signing in to judging, skipping and undo. The focus is always seen."""

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher

from annotation.models import Assignment, Membership
from corpus.models import CurrentJudgment
from tests.factories import make_collection, make_member
from tests.judging_scene import make_scene

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
WORD = "correct horse battery staple"
MOST_TABS = 150
# Where the focus is, and whether a person with eyes would find it: an outline, on the screen, above all else.
FOCUS = """() => {
  const at = document.activeElement, box = at.getBoundingClientRect(), style = getComputedStyle(at);
  const drawn = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
  const inside = box.width > 0 && box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
  return drawn && inside ? "" : at.outerHTML.slice(0, 120);
}"""


def go_to(page, target) -> None:
    """Press Tab until the target has the focus; every stop on the way is seen."""
    target.wait_for()
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement !== document.body"):
            assert page.evaluate(FOCUS) == ""
        if target.evaluate("one => one === document.activeElement"):
            return
    pytest.fail(f"{target} has no place in the order of Tab")


def sign_in(page, member: Membership) -> None:
    member.user.password = PBKDF2PasswordHasher().encode(WORD, "salt")
    member.user.save()
    page.goto("/accounts/login/")
    for name, text in (("login", member.user.username), ("password", WORD)):
        field = page.locator(f"[name={name}]")
        if not field.evaluate("one => one === document.activeElement"):
            go_to(page, field)
        page.keyboard.type(text)
    page.keyboard.press("Enter")
    page.wait_for_url("**/c/**")


def test_alice_signs_in_judges_skips_and_undoes_by_keys(new_page, instance) -> None:
    books = make_collection("books")
    make_scene(books, 6)
    page = new_page()
    sign_in(page, make_member(books, "alice"))
    page.wait_for_selector("#answer")

    def settle(*keys: str) -> None:
        item = page.locator("#desk").get_attribute("data-item")
        for key in keys:
            page.keyboard.press(key)
        page.wait_for_function("item => document.querySelector('#desk').dataset.item !== item", arg=item)

    settle("1")
    assert CurrentJudgment.objects.get().grade == 1
    settle("u")
    assert not CurrentJudgment.objects.filter(grade__isnull=False).exists()
    settle("0")
    settle("s", "3")
    assert Assignment.objects.get(state="skipped").skip_reason == "language"
    # The same without a single letter: by Tab and Enter alone.
    page.wait_for_timeout(500)
    item = page.locator("#desk").get_attribute("data-item")
    go_to(page, page.locator("#answer button").first)
    page.keyboard.press("Enter")
    page.wait_for_function("item => document.querySelector('#desk').dataset.item !== item", arg=item)
    assert CurrentJudgment.objects.filter(grade__isnull=False).count() == 2
