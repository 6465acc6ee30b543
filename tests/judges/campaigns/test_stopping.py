"""A route that its audit finds wrong too often stops, and an admin decides what becomes of it."""

import pytest
from django.test import Client

from annotation.agreement.proportions import confidence_sequence
from annotation.models import Role
from annotation.quality.label_quality.audits import measure_audits
from judges.costs import counters
from judges.domain.audits import LIMIT, surely_over
from judges.engine import route_breakers
from judges.models import Campaign
from tests.admin_site import ROUTE, audited, only_collection
from tests.factories import make_member


def test_the_bound_is_that_of_the_confidence_sequence() -> None:
    for settled in range(0, 61):
        for right in range(settled + 1):
            is_over = confidence_sequence(right, settled).high < 1 - LIMIT
            assert surely_over(right, settled) is is_over, (right, settled)


@pytest.fixture
def campaign(db: None) -> Campaign:
    return audited(only_collection(), right=2, wrong=8)


def of(campaign: Campaign) -> frozenset[str]:
    return route_breakers.trip_routes(campaign.pk, campaign.collection.relevant_from, counters.read(campaign.pk))


def test_a_route_surely_over_the_limit_stops_and_stays_stopped_until_an_admin_lets_it_go_on(campaign: Campaign) -> None:
    assert of(campaign) == {ROUTE}
    assert counters.read(campaign.pk)[f"stopped:{ROUTE}"] == 1
    assert of(campaign) == {ROUTE} and counters.read(campaign.pk)[f"stopped:{ROUTE}"] == 1
    none = {ROUTE: route_breakers.AnsweredAudits(10, 10, 10, 0)}
    stopped = route_breakers.tripped_routes(none, counters.read(campaign.pk))
    assert stopped == {ROUTE}, "later right answers do not start it again"
    assert route_breakers.tripped_routes(none, {}) == frozenset()
    of(campaign)
    route_breakers.reset_route(campaign.pk, ROUTE)
    route_breakers.reset_route(campaign.pk, ROUTE)
    assert of(campaign) == frozenset()
    route_breakers.reset_route(campaign.pk, ROUTE, on=False)
    assert of(campaign) == {ROUTE}


def test_nothing_is_asked_of_a_campaign_without_a_settled_audit(campaign, django_assert_num_queries):
    with django_assert_num_queries(0):
        assert route_breakers.trip_routes(campaign.pk, 1, {}) == frozenset()


def test_the_page_says_what_stopped_and_takes_the_admins_word(campaign: Campaign) -> None:
    books = campaign.collection
    client = Client()
    client.force_login(make_member(books, "charlie", Role.ADMIN).user)
    found = measure_audits(books, campaign, counters.read(campaign.pk))
    assert [route.stopped for route in found.routes if route.key == ROUTE] == [True]
    stopped = '<span class="badge warn">stopped</span>'
    assert stopped in client.get("/c/books/quality/").text
    told = client.post(f"/c/books/audits/{campaign.number}/go-on/", {"route": ROUTE}, follow=True).text
    assert stopped not in told
    assert of(campaign) == frozenset()
    client.post(f"/c/books/audits/{campaign.number}/go-on/", {"route": ROUTE, "stop": "1"})
    assert of(campaign) == {ROUTE}
    assert client.post(f"/c/books/audits/{campaign.number}/go-on/", {"route": "x"}).status_code == 404
    assert client.post("/c/books/audits/999999/go-on/", {"route": ROUTE}).status_code == 404
