"""The Quality page: its sections, old addresses, the number in the menu, and one interval for one number."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotation.agreement.measures import Statistic
from annotation.models import Role, StoredResult
from annotation.quality.label_quality.statistics import STATISTICS, cached_statistics
from annotation.templatetags.reports import percent_span, places
from tests.evidence import make_campaign, make_judge, make_votes
from tests.factories import client_of, make_collection, make_member, make_pair

pytestmark = pytest.mark.django_db


@pytest.fixture
def books():
    """A collection whose two judges differ on every fourth pair; a third judged few."""
    collection = make_collection("books")
    judges = [make_judge(f"judge-{n}") for n in range(3)]
    campaign = make_campaign(collection, judges)
    for place in range(24):
        votes = [place % 2, (place + place // 12) % 2, 1][: 2 + (place < 6)]
        make_votes(campaign, make_pair(collection), judges[: len(votes)], votes)
    return collection


@pytest.fixture
def charlie(books):
    return client_of(make_member(books, "charlie", Role.ADMIN))


def test_audits_agreement_over_time_and_dawid_skene_are_sections_of_one_page(charlie):
    with CaptureQueriesContext(connection) as asked:
        page = charlie.get("/c/books/quality/")
    places = [page.text.index(f'id="{section}"') for section in ("audits", "agreement", "over-time", "dawid-skene")]
    assert places == sorted(places)
    assert all(f'href="#{section}"' in page.text for section in ("audits", "agreement", "over-time", "dawid-skene"))
    assert len(asked) <= 20, [one["sql"][:90] for one in asked.captured_queries]
    address = re.search(r'hx-get="([^"]+quality/[^"]*)"', page.text)
    assert address and f'<a href="{address[1]}"' in page.text, "a link for those without script"
    assert "<html" in charlie.get(address[1]).text
    assert "<html" not in charlie.get(address[1], headers={"HX-Request": "true"}).text


def test_alpha_has_one_interval_on_the_start_page_and_among_any_assessors_named(books, charlie):
    home = (cached_statistics(books).kappas or ())[0]
    report = charlie.get("/c/books/quality/").context["report"]
    named = charlie.get("/c/books/quality/?a=judge-2&a=judge-1&a=judge-0").context["report"]
    assert home.group == "judges" and home.kappa.low is not None
    assert report.measures.alpha_nominal == named.measures.alpha_nominal == home.kappa

    assert "α" not in charlie.get("/c/books/audit-log/").text
    STATISTICS.compute_now(books)
    kappa = (cached_statistics(books).kappas or ())[0].kappa
    row = StoredResult.objects.get()
    # Of fewer pairs it would mislead.
    for n in (29, 30):
        row.values["kappas"][0]["kappa"]["n"] = n
        row.save()
        assert (f"α {places(kappa.value, 2)}" in charlie.get("/c/books/audit-log/").text) == (n == 30)
    assert percent_span(Statistic(0.95, 0.895, 0.984, 40, None)) == "89.5% to 98.4%", "in percent, as the share is"
    assert percent_span(Statistic(None, None, None, 0, "no pair")) == "–"
