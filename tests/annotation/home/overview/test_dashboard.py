"""The admin's home as a story, and the pages behind its figures: what they say, what they open, what they cost."""

import re
from html import unescape

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from annotation.agreement.grade_matrix import pairs_where
from annotation.models import Role, StoredResult
from annotation.quality.label_quality.statistics import STATISTICS
from corpus.models import Collection
from tests.admin_site import ROUTE, audited, only_collection, people_at_work
from tests.factories import client_of, make_collection, make_member, make_pair
from tests.reading import flat

pytestmark = pytest.mark.django_db


@pytest.fixture
def books() -> Collection:
    return only_collection()


@pytest.fixture
def charlie(books: Collection) -> Client:
    return client_of(people_at_work(books)["charlie"])


def get(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200, address
    return flat(response.content.decode())


def test_the_overview_begins_with_what_needs_a_decision(books: Collection, charlie: Client) -> None:
    audited(books, right=38, wrong=2)
    page = get(charlie, "/c/books/")
    headings = re.findall(r"<h2[^>]*>([^<]+)</h2>", page)
    assert headings == ["The promise in figures", "Needs attention", "Progress", "Label quality", "Cost"]
    assert "Automatic labels are<strong>95.0%</strong>correct" in page and "40 of 40 audits completed" in page
    buttons = re.findall(r'<a class="button[^"]*"[^>]*>\s*([^<]+?)\s*<', page[page.index("<main") :])
    assert buttons and not {"Judge", "Benchmark", "Campaigns"} & set(buttons), "the menu has these"


def test_audited_pairs_of_a_route_are_behind_its_number(books: Collection, charlie: Client) -> None:
    campaign = audited(books, right=12, wrong=3)
    page = get(charlie, "/c/books/")
    address = f"/c/books/pairs/?campaign={campaign.number}&amp;route={ROUTE}"
    assert re.search(rf'href="{re.escape(address)}">15 of 15', page)
    listed = get(charlie, unescape(address))
    assert len(re.findall(r'<a href="/c/books/pairs/\d+/"', listed)) == 15


def test_all_routes_that_are_wrong_too_often_share_one_line_that_leads_to_them(
    books: Collection, charlie: Client
) -> None:
    campaign = audited(books, right=20, wrong=30)
    audited(books, right=5, wrong=25, route="r2.m5.y")
    page = get(charlie, "/c/books/")
    assert page.count("wrong too often: ") == 1
    assert "2 of 2 routes are wrong too often: 55 of 80 audited labels, 80 pairs affected" in page
    assert re.search(rf'href="/c/books/quality/\?campaign={campaign.number}"[^>]*>\s*Review routes', page)
    assert page.count('class="badge danger"') >= 3, "the line, and both routes of the table"
    assert f'href="/c/books/audits/{campaign.number}/to-people/?route={ROUTE}"' in page


def test_resolved_waiting_in_work_and_failed_stand_apart(books: Collection, charlie: Client) -> None:
    page = get(charlie, "/c/books/")
    for words in ("<strong>9</strong>of", ">5 wait for people<", ">2 in work<", ">2 failed<"):
        assert words in page, words
    lengths = {key: float(width) for key, width in re.findall(r'<rect class="(\w+)"[^>]* width="([\d.]+)"', page)}
    assert lengths.pop("rest") == 100.0
    assert lengths == {
        key: pytest.approx(100 * n / 18, abs=0.001) for key, n in (("resolved", 9), ("open", 5), ("failed", 2))
    }


def test_a_failure_to_measure_is_said_in_its_section(
    books: Collection, charlie: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_values: object) -> None:
        raise MemoryError

    monkeypatch.setattr("annotation.quality.label_quality.statistics.compute_statistics", fail)
    monkeypatch.setattr("annotation.quality.label_quality.loading.measure_collection_audits", fail)
    fragment = charlie.get("/c/books/quality/readiness/", headers={"HX-Request": "true"}).text
    for page in (get(charlie, "/c/books/"), fragment):
        assert "not enough memory" in page and "Ready to export" not in page


def test_without_pairs_or_campaign_the_home_says_what_to_do(charlie: Client) -> None:
    client = client_of(make_member(empty := make_collection("empty"), "olga", Role.ADMIN))
    assert 'class="button primary" href="/c/empty/import/"' in get(client, "/c/empty/")
    make_pair(empty)
    assert 'class="button primary" href="/c/empty/campaigns/"' in get(client, "/c/empty/")
    assert client.get("/c/empty/members/").context["charts"] == []
    assert "Nothing to compare" in get(client, "/c/empty/quality/over-time/")


def test_people_cost_what_the_rate_says_and_unknown_prices_are_named(books: Collection, charlie: Client) -> None:
    page = get(charlie, "/c/books/")
    assert "Set hourly rate" in page
    assert "no known price" in page
    Collection.objects.update(hourly_rate=36.0)
    assert "Total" in get(charlie, "/c/books/")


def test_a_cross_table_counts_what_its_cells_list(books: Collection, charlie: Client) -> None:
    page = get(charlie, "/c/books/agreement/two/?a=books-judge-1&b=reference")
    cells = re.findall(r'href="\?([^"]+)#pairs-h"[^>]*><span class="visually-hidden">[^<]*: ([\d,]+) pairs', page)
    assert cells
    for query, count in cells:
        shown = get(charlie, f"/c/books/agreement/two/?{unescape(query)}")
        assert len(re.findall(r'<a href="/c/books/pairs/\d+/"', shown)) == int(count)
        assert 'aria-current="true"' in shown
    total = sum(int(count) for _, count in cells)
    assert total == len(pairs_where(books, "books-judge-1", "reference", "both"))
    for names, code in (("", 302), ("?a=books-judge-1&b=nobody", 404), ("?a=alice&b=alice", 404)):
        assert charlie.get(f"/c/books/agreement/two/{names}").status_code == code


@pytest.mark.parametrize("address", ["", "quality/", "agreement/two/?a=books-judge-1&b=books-judge-2", "members/"])
def test_pages_save_their_charts(books: Collection, charlie: Client, address: str) -> None:
    audited(books, right=8, wrong=1)
    page = get(charlie, f"/c/books/{address}")
    files = re.findall(r'href="([^"]*[?&;][^"]*as=(?:svg|csv))"', page)
    assert files
    for file in files:
        path = f"/c/books/{address.partition('?')[0]}" if file.startswith("?") else ""
        saved = charlie.get(path + unescape(file))
        assert saved.status_code == 200 and "attachment" in saved["Content-Disposition"], file
    for wrong in ("chart=nonsense", "chart=flow&as=exe"):
        assert charlie.get(f"/c/books/?{wrong}").status_code == 404


def test_the_home_of_a_large_collection_reads_stored_figures(
    books: Collection, charlie: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("annotation.quality.label_quality.statistics.SMALL", 10)
    audited(books, right=8, wrong=1)
    assert "not computed yet" in get(charlie, "/c/books/")
    STATISTICS.refresh(books)
    assert StoredResult.objects.count() == 1
    assert "as of" in get(charlie, "/c/books/")
    with CaptureQueriesContext(connection) as found:
        get(charlie, "/c/books/")
    assert len(found) <= 26
    read = [one["sql"] for one in found if "judges_attempt" in one["sql"] and "generate_series" not in one["sql"]]
    assert read == [], "attempts are read by a sample of keys, never all"
