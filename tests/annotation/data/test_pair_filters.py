"""Filters of the table by person, day, comment, flag, campaign and route: on the page, in bulk acts and in the API."""

import re
from datetime import UTC, datetime

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from annotation.models import Assignment, Role
from annotation.models.pair_table import BulkAct, SavedView
from api.tokens import make_token
from corpus.models import Judgment, Pair
from judges.costs import counters
from judges.models import Campaign, Work
from tests.factories import client_of, make_collection, make_item, make_member, make_pair

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin():
    return make_member(make_collection("books"), "charlie", Role.ADMIN)


@pytest.fixture
def charlie(admin):
    return client_of(admin)


@pytest.fixture
def pairs(admin):
    """By alice on 1 June, with a comment; by bob on 2 June; flagged by bob on 3 June; labelled by routes; nothing."""
    books = admin.collection
    alice, bob = make_member(books, "alice"), make_member(books, "bob")
    pairs = [make_pair(books) for _ in range(5)]
    for pair, member, day, comment in ((pairs[0], alice, 1, "Unclear."), (pairs[1], bob, 2, "")):
        Judgment.objects.create(
            pair=pair, assessor=member.assessor, item=make_item(pair, state="settled"), step="final", grade=1,
            comment=comment, created_at=datetime(2026, 6, day, 12, tzinfo=UTC),
        )  # fmt: skip
    Assignment.objects.create(
        item=make_item(pairs[2], state="conflict"), membership=bob, state="done", flagged=True, flag_note="Odd.",
        lease_until=datetime(2026, 6, 4, tzinfo=UTC), ended_at=datetime(2026, 6, 3, 12, tzinfo=UTC),
    )  # fmt: skip
    for route in ("r1.m5.y", "r2.m3.n"):
        campaign = Campaign.objects.create(collection=books, policy="debate", panel="main", state="finished")
        Work.objects.create(campaign=campaign, pair=pairs[3], state="labelled", label=1, stratum=route)
        counters.add(campaign.pk, f"route:{route}", 1)
    return [pair.pk for pair in pairs]


FILTERS = [
    ("person=alice", [0]),
    ("person=bob", [1]),
    ("person=nobody", []),
    ("since=2026-06-02", [1]),
    ("until=2026-06-01", [0]),
    ("since=2026-06-01&until=2026-06-02", [0, 1]),
    ("since=2026-06-02&person=alice", []),
    ("since=yesterday", []),
    ("until=9999-12-31", []),
    ("comment=yes", [0]),
    ("comment=no", []),
    ("flag=yes", [2]),
    ("flag=yes&person=bob&since=2026-06-03&until=2026-06-03&comment=yes", [2]),
    ("flag=yes&person=alice", []),
    ("stratum=r1.m5.y", [3]),
    ("stratum=r1.m5.y&campaign=1", [3]),
    ("stratum=r1.m5.y&campaign=2", []),
    ("stratum=nonsense", []),
]


@pytest.mark.parametrize(("query", "places"), FILTERS)
def test_the_page_the_acts_and_the_api_find_the_same_pairs(charlie, admin, pairs, query, places):
    expected = [pairs[place] for place in places]
    page = charlie.get(f"/c/books/pairs/?{query}").text
    assert [int(pk) for pk in re.findall(r'name="pair" value="(\d+)"', page)] == expected
    token = make_token(admin.user, None, name="test", scopes=["read"], days=1)[1]
    headers = {"Authorization": f"Bearer {token}"}
    listed = Client().get(f"/api/v1/collections/books/pairs?{query}", headers=headers).json()["items"]
    assert [row["number"] for row in listed] == expected
    answer = charlie.post("/c/books/pairs/actions/", {"act": "send", "all": "1", "query": query})
    assert answer.status_code == (302 if expected else 422)
    assert not expected or BulkAct.objects.get().pairs == expected
    charlie.post("/c/books/pairs/views/", {"name": "mine", "query": query})
    assert SavedView.objects.get().query.split("&").sort() == query.split("&").sort()


def test_filters_in_use_are_named_in_words_and_taken_off_one_by_one(charlie, pairs):
    page = charlie.get("/c/books/pairs/?stratum=r1.m5.y&person=alice&flag=yes&campaign=1").text
    assert "Route: <bdi>Round 1" in page and "Judged by: <bdi>alice" in page
    assert "Flag: <bdi>flagged by a person" in page and 'href="?campaign=1&amp;stratum=r1.m5.y&amp;flag=yes"' in page
    assert re.search(r'<option value="r1.m5.y" selected>', page) and 'value="r2.m3.n"' not in page, "of that campaign"
    assert Pair.objects.count() == 5


def test_columns_are_kept_for_the_person_in_their_order_and_cost_one_statement_at_most(charlie, admin, pairs):
    def heads() -> list[str]:
        return re.findall(r'<th scope="col" class="of-(\w+)', charlie.get("/c/books/pairs/").text)[1:]

    assert heads() == ["query", "document", "state", "label", "origin", "gold", "priority"]
    with CaptureQueriesContext(connection) as before:
        charlie.get("/c/books/pairs/")
    for column in ("judged", "people", "state", "label", "origin", "gold", "priority", "query", "x"):
        sent = charlie.post("/c/books/pairs/columns/", {"column": column, "query": "state=open"})
        assert sent["Location"] == "/c/books/pairs/?state=open"
    assert heads() == ["query", "document", "people", "judged"]
    with CaptureQueriesContext(connection) as after:
        page = charlie.get("/c/books/pairs/").text
    assert len(after) == len(before) + 1 and "alice" in page and "2026-06-01T12:00:00" in page
    charlie.post("/display/", {"theme": "dark"})
    assert heads() == ["query", "document", "people", "judged"], "appearance and columns do not overwrite each other"
    assert "of-judged" not in client_of(make_member(admin.collection, "dora", Role.ADMIN)).get("/c/books/pairs/").text
