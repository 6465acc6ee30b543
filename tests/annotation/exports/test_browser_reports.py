"""Agreement and exports in a real Chromium: axe, light and dark, phone, downloads, a cell that opens its pairs."""

import pytest

from annotation.exports.options import ExportOptions
from annotation.exports.snapshots import create_snapshot, write_snapshot
from annotation.models import Role
from annotation.models.snapshots import Snapshot
from tests.evidence import make_assessor, make_campaign, make_judge, make_judgment, make_label, make_turn, make_votes
from tests.factories import make_collection, make_document, make_item, make_member, make_pair, make_query
from tests.stages import first_quick

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
LOOKS = {"light": {"color_scheme": "light"}, "dark": {"color_scheme": "dark"}, "phone": PHONE}
JUDGES = ("containment", "bm25", "tfidf", "coverage", "ngrams")


@pytest.fixture
def charlie():
    """An admin of a judged collection of 40 pairs."""
    books = make_collection("books", title="Python's reference")
    charlie = make_member(books, "charlie", Role.ADMIN)
    people = [make_assessor(books, name) for name in ("alice", "bob")]
    judges = [make_judge(f"judge-{name}") for name in JUDGES]
    campaign = make_campaign(books, judges, policy="debate+ensemble")
    for n in range(40):
        pair = make_pair(books, make_query(books, f"Question {n}?"), make_document(books, f"A mapping object {n}."))
        truth = int(n % 3 == 0)
        make_votes(campaign, pair, judges, [truth ^ (n * (k + 2) % 7 == 0) ^ (k == 4 and n % 2) for k in range(5)])
        make_turn(campaign, pair, judges[0], "for", 1, 1)
        make_turn(campaign, pair, judges[1], "against", 1, truth)
        make_label(pair, truth, "debate+ensemble" if n % 4 else "people")
        if n % 4 == 0:
            make_item(pair, campaign=campaign.pk, state="settled")
            for place, person in enumerate(people):
                make_judgment(pair, person, truth ^ (n % 8 == 0 and place))
    return charlie.user


@pytest.mark.slow
def test_the_matrix_of_33_judges_scrolls_under_its_headers(charlie, new_page, instance, violations):
    books = charlie.memberships.get().collection
    judges = [make_judge(f"candidate-{n:02}-with-a-name") for n in range(33)]
    campaign = make_campaign(books, judges)
    for n, pair in enumerate(books.pair_set.all()[:8]):
        make_votes(campaign, pair, judges, [int((n * k) % 5 < 2) for k in range(33)])
    page = new_page(user=charlie)
    page.goto("/c/books/quality/?" + "&".join(f"a={judge.name}" for judge in judges))
    matrix = page.locator(".matrix")
    matrix.evaluate("area => area.scrollTo(600, 400)")
    area, corner = matrix.bounding_box(), page.locator(".matrix tbody tr:nth-child(20) th").bounding_box()
    assert corner["x"] == pytest.approx(area["x"], abs=2)
    head = page.locator(".matrix thead th:nth-child(20)").bounding_box()
    assert head["y"] == pytest.approx(area["y"], abs=2)
    matrix.scroll_into_view_if_needed()
    assert violations(page) == []


@pytest.mark.parametrize("look", first_quick(LOOKS))
def test_opened_figures_and_exports_in_every_state_have_no_violation(charlie, new_page, instance, violations, look):
    page = new_page(user=charlie, **LOOKS[look])

    def open_all(selector):
        for summary in page.locator(selector).all():
            summary.click()
        assert violations(page) == [], page.url
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), page.url

    page.goto("/c/books/quality/")
    open_all("details > summary")
    page.goto("/c/books/exports/")
    page.check("input[value=prism]")
    page.select_option("#id_teacher", "votes")
    page.locator(".make-export details > summary").click()
    page.check("#id_balance")
    page.get_by_role("button", name="Create export").click()
    page.wait_for_selector(".snapshot .badge.good")
    books = charlie.memberships.get().collection
    Snapshot.objects.create(collection=books, format="qrels", state="making", folder="x")
    Snapshot.objects.create(collection=books, format="csv", state="failed", error="No space left on device")
    page.reload()
    open_all(".snapshot details > summary")


@pytest.mark.slow
def test_the_list_shows_by_itself_when_an_export_is_ready(charlie, new_page, instance, tmp_path):
    books = charlie.memberships.get().collection
    snapshot = create_snapshot(books, ExportOptions(format="qrels"), tmp_path / "out")
    page = new_page(user=charlie)
    page.goto("/c/books/exports/")
    assert "Waiting for a worker" in page.inner_text("#snapshots")
    write_snapshot(snapshot)
    page.wait_for_selector(".badge.good")
    assert page.locator("#snapshots").count() == 1
    assert page.locator("#snapshots").get_attribute("hx-get") is None
