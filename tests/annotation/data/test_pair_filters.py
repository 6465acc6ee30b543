"""The table of pairs: filters on the page, in bulk acts and in the API; order by each column, pages by key, search."""

import re
from datetime import UTC, datetime

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from annotation.data import pairs as pair_pages
from annotation.models import Assignment, Role
from annotation.models.pair_table import BulkAct, SavedView
from api.tokens import make_token
from corpus.models import Collection, Document, Item, Judgment, Pair
from corpus.models.search import DocumentTerms
from corpus.search import full_text
from judges.costs import counters
from judges.models import Campaign, Work
from tests.admin_site import only_collection, people_at_work
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


@pytest.fixture
def judged():
    return only_collection()


@pytest.fixture
def reader(judged):
    client = client_of(people_at_work(judged)["charlie"])
    for place, item in enumerate(Item.objects.all()):
        Item.objects.filter(pk=item.pk).update(priority=-0.5 if place % 2 else 0.25)
    return client


def listed(page: str) -> list[str]:
    return re.findall(r'<a href="/c/books/pairs/(\d+)/"', page)


def cells(page: str, column: int) -> list[str]:
    """What a column of the table says, row by row."""
    rows = re.findall(r"<tr>\s*<td class=.of-box.*?</tr>", page, re.S)
    found = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.S)[column] for row in rows]
    return [" ".join(re.sub(r"<[^>]*>", " ", cell).split()) for cell in found]


STATES = ["labelled", "escalated", "failed", "running", "pending", "waits", "conflict", "completed", "new"]
VALUES = {
    "query": (1, lambda text: text.split()[0]), "document": (2, lambda text: text.split()[0]),
    "state": (3, lambda text: STATES.index(text.split()[0])), "label": (4, lambda text: float(text.split()[0])),
    "origin": (5, str), "gold": (6, lambda text: float(text.split()[0])), "priority": (7, float),
}  # fmt: skip


@pytest.mark.parametrize("downwards", [False, True], ids=["ascending", "descending"])
@pytest.mark.parametrize("column", VALUES)
def test_every_column_sorts_both_ways_and_what_has_no_value_comes_last(reader, column, downwards):
    sign = "-" if downwards else ""
    page = reader.get(f"/c/books/pairs/?sort={sign}{column}").text
    place, read = VALUES[column]
    said = cells(page, place)
    known = [text for text in said if text not in ("", "none")]
    assert len(said) == 18 and len(set(known)) > 1
    values = [read(text) for text in known]
    assert values == sorted(values, reverse=downwards)
    assert all(text in ("", "none") for text in said[len(known) :]), "what has no value comes last"
    direction = "descending" if downwards else "ascending"
    assert re.search(rf'class="of-{column}[^"]*"\s*aria-sort="{direction}"', page)
    assert page.count("aria-sort") == 1


@pytest.mark.parametrize("sort", [*VALUES, "-label", "-query", "-gold", "nonsense"])
def test_pages_in_any_order_show_every_pair_once_and_lead_back(monkeypatch, reader, sort):
    whole = listed(reader.get(f"/c/books/pairs/?sort={sort}").text)
    monkeypatch.setattr(pair_pages, "PAGE", 7)
    seen, address = [], f"/c/books/pairs/?sort={sort}"
    while address:
        page = reader.get(address).text
        seen += listed(page)
        following = re.search(r'rel="next" href="\?([^"]+)"', page)
        address = f"/c/books/pairs/?{following[1].replace('&amp;', '&')}" if following else ""
    assert seen == whole and len(set(whole)) == 18
    back = re.search(r'rel="prev" href="\?([^"]+)"', page)
    assert back
    assert listed(reader.get(f"/c/books/pairs/?{back[1].replace('&amp;', '&')}").text) == whole[7:14]


def test_grades_stand_as_numbers_with_their_words_and_a_key_that_means_nothing_is_no_error(judged, reader):
    for key in ("after=3&key=x", "after=3&key=nan", "after=x", "before=0&key=1", "after=3&key=inf"):
        assert reader.get(f"/c/books/pairs/?sort=label&{key}").status_code == 200
    page = reader.get("/c/books/pairs/").text
    words = {"0 not relevant", "1 relevant"}
    assert set(cells(page, 4)) - {"none"} == words and set(cells(page, 6)) - {""} <= words
    assert re.findall(r"<option value=\"([01])\"[^>]*>([^<]*)<", page) == [("0", "0 not relevant"), ("1", "1 relevant")]
    assert reader.get("/c/books/pairs/?label=1").context["filters"].label == "1"
    Collection.objects.filter(pk=judged.pk).update(grades=10, relevant_from=5)
    assert set(cells(reader.get("/c/books/pairs/").text, 4)) - {"none"} == {"0 not relevant", "1"}

    page = reader.get("/c/books/pairs/?q=keys&state=failed&sort=-label").text
    chips = re.findall(r'<li class="badge accent">([^:]+): <bdi>([^<]+)</bdi><a href="\?([^"]*)"', page)
    assert chips == [("Search", "keys", "state=failed&amp;sort=-label"), ("State", "failed", "q=keys&amp;sort=-label")]


def index(judged: Collection) -> None:
    full_text.index_documents(judged.pk, lambda _done, _total: None, lambda: False)


# A longer word may begin with a term, and titles are searched, too.
TERMS = {"hashable": 8, "hash": 8, "HASHABLE elements": 4, "elements nowhere": 0, "可变对象": 3, "映射类型": 3,
         "'); DROP TABLE": 0, "a & !b": 0, "...": 0}  # fmt: skip


def test_texts_and_titles_of_documents_are_searched_by_their_terms_frequent_ones_as_rare_ones(
    judged, reader, monkeypatch
):
    index(judged)
    for q, count in TERMS.items():
        assert len(listed(reader.get("/c/books/pairs/", {"q": q}).text)) == count, q
    rows = {sort: listed(reader.get(f"/c/books/pairs/?q=hashable&sort={sort}").text) for sort in ("", "-label")}
    monkeypatch.setattr(pair_pages, "LISTED_DOCUMENTS", 2)
    for sort, same in rows.items():
        assert listed(reader.get(f"/c/books/pairs/?q=hashable&sort={sort}").text) == same


def test_documents_are_indexed_once_and_what_was_imported_meanwhile_too(judged):
    told: list[tuple[int, int]] = []
    index(judged)
    known = DocumentTerms.objects.count()
    assert known == Document.objects.count()
    new = Document.objects.create(
        collection=judged, external_id="late", text="Zebra — 'quoted' \\ word", content_hash="0"
    )
    full_text.index_documents(judged.pk, lambda done, total: told.append((done, total)), lambda: False)
    assert told == [(1, 1)]
    assert DocumentTerms.objects.get(document=new).terms == "'quoted' 'word' 'zebra'"
    full_text.index_documents(judged.pk, lambda done, total: told.append((done, total)), lambda: False)
    assert len(told) == 1
