"""The admin's home as a story, its four figures, and the pages behind them: what they say, open and cost."""

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotation.agreement.grade_matrix import pairs_where
from annotation.models import Role, StoredResult
from annotation.quality.label_quality.statistics import (
    STATISTICS,
    StoredStatistics,
    count_labels,
    labels_chart,
    read_stored_statistics,
)
from corpus.models import Collection, Label
from tests.admin_site import ROUTE, audited, only_collection, people_at_work
from tests.evidence import make_campaign, make_judge, make_label
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


def test_the_overview_begins_with_what_needs_a_decision_and_leads_to_the_audited_pairs(books, charlie):
    campaign = audited(books, right=38, wrong=2)
    page = get(charlie, "/c/books/")
    headings = re.findall(r"<h2[^>]*>([^<]+)</h2>", page)
    assert headings == ["The promise in figures", "Needs attention", "Progress", "Label quality", "Cost"]
    assert "Automatic labels are<strong>95.0%</strong>correct" in page and "40 of 40 audits completed" in page
    buttons = re.findall(r'<a class="button[^"]*"[^>]*>\s*([^<]+?)\s*<', page[page.index("<main") :])
    assert buttons and not {"Judge", "Benchmark", "Campaigns"} & set(buttons), "the menu has these"
    address = f"/c/books/pairs/?campaign={campaign.number}&amp;route={ROUTE}"
    assert re.search(rf'href="{re.escape(address)}">40 of 40', page)
    assert len(re.findall(r'<a href="/c/books/pairs/\d+/"', get(charlie, unescape(address)))) == 40


def test_all_routes_that_are_wrong_too_often_share_one_line_that_leads_to_them(books, charlie):
    campaign = audited(books, right=20, wrong=30)
    audited(books, right=5, wrong=25, route="r2.m5.y")
    page = get(charlie, "/c/books/")
    assert page.count("wrong too often: ") == 1
    assert "2 of 2 routes are wrong too often: 55 of 80 audited labels, 80 pairs affected" in page
    assert re.search(rf'href="/c/books/quality/\?campaign={campaign.number}"[^>]*>\s*Review routes', page)
    assert page.count('class="badge danger"') >= 3, "the line, and both routes of the table"
    assert f'href="/c/books/audits/{campaign.number}/to-people/?route={ROUTE}"' in page


def test_states_stand_apart_people_cost_what_the_rate_says_and_unknown_prices_are_named(charlie: Client) -> None:
    page = get(charlie, "/c/books/")
    for words in ("<strong>9</strong>of", ">5 wait for people<", ">2 in work<", ">2 failed<"):
        assert words in page, words
    lengths = {key: float(width) for key, width in re.findall(r'<rect class="(\w+)"[^>]* width="([\d.]+)"', page)}
    assert lengths.pop("rest") == 100.0
    shares = {key: 100 * count / 18 for key, count in (("resolved", 9), ("open", 5), ("failed", 2))}
    assert lengths == pytest.approx(shares, abs=0.001)
    assert "Set hourly rate" in page and "no known price" in page
    Collection.objects.update(hourly_rate=36.0)
    assert "Total" in get(charlie, "/c/books/")


def test_a_failure_to_measure_is_said_in_its_section(books, charlie, monkeypatch):
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


def test_pages_save_their_charts(books: Collection, charlie: Client) -> None:
    audited(books, right=8, wrong=1)
    for address in ("", "quality/", "agreement/two/?a=books-judge-1&b=books-judge-2", "members/"):
        files = re.findall(r'href="([^"]*[?&;][^"]*as=(?:svg|csv))"', get(charlie, f"/c/books/{address}"))
        assert files, address
        for file in files:
            path = f"/c/books/{address.partition('?')[0]}" if file.startswith("?") else ""
            saved = charlie.get(path + unescape(file))
            assert saved.status_code == 200 and "attachment" in saved["Content-Disposition"], file
    for wrong in ("chart=nonsense", "chart=flow&as=exe"):
        assert charlie.get(f"/c/books/?{wrong}").status_code == 404


def test_the_home_of_a_large_collection_reads_stored_figures(books, charlie, monkeypatch):
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


def figures(client: Client, name: str = "books") -> dict[str, Any]:
    people, accuracy, agreement, money = client.get(f"/c/{name}/").context["board"]["promise"]
    return {"people": people, "accuracy": accuracy, "agreement": agreement, "money": money}


def test_each_figure_has_its_interval_and_what_it_is_counted_over(books: Collection, charlie: Client) -> None:
    audited(books, right=38, wrong=2)
    promise = figures(charlie)
    status = charlie.get("/c/books/").context["status"]
    ended, asked = status["labelled"] + status["escalated"], status["escalated"] + status["audits"]
    assert promise["people"].value == f"{asked / ended:.1%}"
    assert promise["people"].details[0] == f"{asked} of {ended} pairs, audits included"
    assert re.search(r" at \d+\.\d (s|min) a pair", promise["people"].details[1]), "short times are not 0.0 min"
    assert (promise["accuracy"].value, promise["accuracy"].details) == (
        "95.0%", ("40 of 40 audits completed", "always-valid interval"),
    )  # fmt: skip
    audits = charlie.get("/c/books/").context["board"]["audits"]
    assert audits.looks.low < audits.overall.low and audits.looks.high >= audits.overall.value
    assert promise["accuracy"].interval == f"{audits.looks.low:.1%} to {audits.looks.high:.1%}"
    assert "pairs with two or more of them" in promise["agreement"].details[1]
    assert promise["agreement"].interval or promise["agreement"].details[-1] == "interval not known"
    page = charlie.get("/c/books/").text
    assert page.count("95% interval ") >= 2 and page.index("promise-h") < page.index("now-h")


def test_what_is_not_measured_names_the_action_that_measures_it() -> None:
    empty = make_collection("empty", budget=2.0)
    campaign = make_campaign(empty, [make_judge("judge-1")], policy="single")
    make_pair(empty)
    client = client_of(make_member(empty, "olga", Role.ADMIN))
    promise = figures(client, "empty")
    assert [figure.value for figure in promise.values()] == ["", "", "", "$0.00"]
    assert [figure.action for figure in promise.values()] == [
        "Start a campaign", "Draw a label audit", "Set people per pair", "",
    ]  # fmt: skip
    assert promise["money"].details[-1] == "$2.00 left of $2.00"
    for figure in promise.values():
        assert not figure.address or client.get(figure.address.partition("#")[0]).status_code == 200
    Collection.objects.update(budget=None)
    assert figures(client, "empty")["money"].action == "Set a limit"
    page = client.get(f"/c/empty/?campaign={campaign.number}").text
    assert page.count("not measured yet") >= 3


def test_labels_over_time_are_drawn_from_the_second_day_on() -> None:
    books = make_collection("books")
    for number, origin in enumerate(("debate", "debate", "people")):
        make_label(make_pair(books), number % 2, origin)
    statistics = StoredStatistics(stored=False)
    assert [(judges, people) for _day, judges, people in count_labels(books)] == [(2, 1)]
    assert labels_chart(books, statistics) is None
    Label.objects.filter(origin="people").update(updated_at=timezone.now() - timedelta(days=3))
    assert [(judges, people) for _day, judges, people in count_labels(books)] == [(0, 1), (2, 0)]
    chart = labels_chart(books, statistics)
    assert chart is not None and "judges" in chart.svg and "people" in chart.svg
    assert labels_chart(books, StoredStatistics(stored=True)) is None, "a large collection's are stored"
    STATISTICS.refresh(books)
    assert len(read_stored_statistics(books).labels) == 2
