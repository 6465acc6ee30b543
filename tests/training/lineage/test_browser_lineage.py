"""Lineage and suspected label errors in a real Chromium: axe, dark, a phone, Chinese, and by keyboard alone."""

from pathlib import Path

import pytest

from annotation.models import Role
from annotation.quality.label_errors import suspects
from benchmark.models import Report
from corpus.models import Collection, Item, Label, Pair
from tests.annotation.people.accounts.test_reach import OVERFLOW
from tests.evidence import make_assessor, make_judgment
from tests.factories import make_member
from tests.judged_books import make_books
from tests.looks import LOOKS
from tests.training.lineage.test_lineage import used_label, whole_export
from training.models import Model

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def travelled_label(books: Collection, folder: Path) -> tuple[Pair, Model]:
    """A label that went to two exports, a model, runs and a report, and changed since."""
    whole_export(books, "qrels", folder / "qrels")
    pair, model, run, qrels = used_label(books, folder)
    make_judgment(pair, make_assessor(books, "bob"), 0)
    Label.objects.filter(pair=pair).update(grade=0, origin="people")
    Report.objects.create(
        collection=books, before=qrels, after=qrels, key="k", options={"runs": [run.pk]}, state="ready"
    )
    return pair, model


def test_a_label_is_followed_and_suspects_are_sent_to_people_in_every_look_and_by_keyboard(
    instance, new_page, violations, tmp_path
):
    books = make_books()
    alice = make_member(books, "alice", Role.ADMIN)
    pair, model = travelled_label(books, tmp_path)
    suspects.LABEL_ERRORS.compute_now(books)
    addresses = [
        f"/c/books/pairs/{pair.pk}/lineage/",
        f"/c/books/training/models/{model.pk}/lineage/",
        "/c/books/quality/label-errors/",
    ]
    found: dict[str, list[str]] = {}
    for look, options in {**LOOKS, "Chinese": {"locale": "zh-CN"}}.items():
        page = new_page(user=alice.user, **options)
        for address in addresses:
            page.goto(address)
            for summary in page.locator("main details > summary").all():
                summary.click()
            if problems := violations(page) + page.evaluate(OVERFLOW):
                found[f"{look} {address}"] = problems
        if look == "Chinese":
            assert "疑似标签错误" in page.inner_text("h1")
    assert found == {}

    page = new_page(user=alice.user)
    page.goto(f"/c/books/pairs/{pair.pk}/")
    page.locator("a:has-text('Where this label went')").press("Enter")
    page.wait_for_url("**/lineage/")
    assert "Qrels 1" in page.inner_text("main dl") and "changed" in page.inner_text("main")
    page.locator(f"main dl a:has-text('{model.name}')").press("Enter")
    page.wait_for_url("**/models/*/lineage/")
    assert "changed since" in page.inner_text("main")
    page.goto("/c/books/quality/label-errors/")
    first = page.locator("tbody input[name=pair]").first
    first.focus()
    page.keyboard.press("Space")
    page.locator("button:has-text('Send to people')").press("Enter")
    page.wait_for_url("**/pairs/actions/*/")
    assert not Item.objects.exists()
    page.locator("main form button.primary").first.press("Enter")
    page.wait_for_function("() => /Undo/.test(document.querySelector('main').innerText)")
    assert Item.objects.get().reason == "requested"
