"""Without a mouse: signing in, judging, skipping, undo; import, campaign, export. The focus is always seen."""

from pathlib import Path

import pytest

from annotation.models import Assignment, Membership, Role
from annotation.models.snapshots import Snapshot
from annotation.people.accounts.passwords import PasswordHasher
from corpus.models import CurrentJudgment, Document
from judges.models import Campaign, Work
from judges.panels.offline_panel import ensure_offline
from tests.annotation.data.imports.test_browser_import import csv_files, worker
from tests.factories import make_collection, make_member
from tests.instances import until
from tests.judging_scene import make_scene

__all__ = ["worker"]
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
    member.user.password = PasswordHasher().encode(WORD, "salt of it")
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
    books, page = make_collection("books"), new_page()
    make_scene(books, 6)
    sign_in(page, make_member(books, "alice"))
    page.get_by_role("heading", name="First read the guidelines").wait_for()
    page.keyboard.press("1")
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
    go_to(page, page.locator("#answer button").first)
    settle("Enter")
    assert CurrentJudgment.objects.filter(grade__isnull=False).count() == 2


def press(page, target, key: str = "Enter") -> None:
    """Go to the target by Tab and press the key there."""
    go_to(page, target)
    page.keyboard.press(key)


def test_charlie_imports_files_starts_a_campaign_and_exports_labels_by_keys(
    new_page, instance, worker, tmp_path: Path
) -> None:
    ensure_offline()
    books = make_collection("books")
    # Without motion: a page that still scrolls has not yet brought what has the focus into sight.
    page = new_page(user=make_member(books, "charlie", Role.ADMIN).user, reduced_motion="reduce")

    page.goto("/c/books/import/")
    go_to(page, page.get_by_label("Files"))
    with page.expect_file_chooser() as chooser:
        page.keyboard.press("Space")
    chooser.value.set_files(csv_files(tmp_path))
    start = page.get_by_role("button", name="Import", exact=True)
    start.wait_for()
    press(page, start)
    # No model was added: the first campaign is an offline trial, whose configuration is changed before it starts.
    press(page, page.get_by_role("button", name="Try offline"))
    page.get_by_role("heading", name="Start this campaign?").wait_for()
    assert Document.objects.count() == 3
    press(page, page.get_by_role("link", name="Back", exact=True))

    page.wait_for_url("**/campaigns/")
    go_to(page, page.locator("[name=policy]:checked"))
    page.keyboard.press("ArrowDown")
    policy = page.locator("[name=policy]:checked").get_attribute("value")
    press(page, page.locator("summary", has_text="Limits and options"))
    go_to(page, page.locator("[name=limit]"))
    page.keyboard.type("4")
    press(page, page.get_by_role("button", name="Show estimate"))
    press(page, page.get_by_role("button", name="Start now"), "Space")
    until(lambda: Campaign.objects.filter(state="finished", policy=policy).exists())
    assert Work.objects.count() == 4

    page.goto("/c/books/exports/")
    go_to(page, page.locator("[name=format]:checked"))
    page.keyboard.press("ArrowDown")
    wanted = page.locator("[name=format]:checked").get_attribute("value")
    press(page, page.get_by_role("button", name="Create export"))
    page.locator(".snapshot .badge.good").wait_for()
    assert Snapshot.objects.get().format == wanted
    go_to(page, page.locator(".snapshot a[href*='/exports/']").first)
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    assert Path(download.value.path()).stat().st_size > 0
