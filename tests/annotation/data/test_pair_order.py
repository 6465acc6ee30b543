"""The table of pairs sorted by each column, in pages by key, and searched by the texts of documents."""

import re

import pytest

from annotation.data import pairs
from corpus.models import Collection, Document, Item
from corpus.models.search import DocumentTerms
from corpus.search import full_text
from tests.admin_site import only_collection, people_at_work
from tests.factories import client_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def books():
    return only_collection()


@pytest.fixture
def charlie(books):
    client = client_of(people_at_work(books)["charlie"])
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
def test_every_column_sorts_both_ways_and_what_has_no_value_comes_last(charlie, column, downwards):
    sign = "-" if downwards else ""
    page = charlie.get(f"/c/books/pairs/?sort={sign}{column}").text
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
def test_pages_in_any_order_show_every_pair_once_and_lead_back(monkeypatch, charlie, sort):
    whole = listed(charlie.get(f"/c/books/pairs/?sort={sort}").text)
    monkeypatch.setattr(pairs, "PAGE", 7)
    seen, address = [], f"/c/books/pairs/?sort={sort}"
    while address:
        page = charlie.get(address).text
        seen += listed(page)
        following = re.search(r'rel="next" href="\?([^"]+)"', page)
        address = f"/c/books/pairs/?{following[1].replace('&amp;', '&')}" if following else ""
    assert seen == whole and len(set(whole)) == 18
    back = re.search(r'rel="prev" href="\?([^"]+)"', page)
    assert back
    assert listed(charlie.get(f"/c/books/pairs/?{back[1].replace('&amp;', '&')}").text) == whole[7:14]


def test_grades_stand_as_numbers_with_their_words_and_a_key_that_means_nothing_is_no_error(books, charlie):
    for key in ("after=3&key=x", "after=3&key=nan", "after=x", "before=0&key=1", "after=3&key=inf"):
        assert charlie.get(f"/c/books/pairs/?sort=label&{key}").status_code == 200
    page = charlie.get("/c/books/pairs/").text
    words = {"0 not relevant", "1 relevant"}
    assert set(cells(page, 4)) - {"none"} == words and set(cells(page, 6)) - {""} <= words
    assert re.findall(r"<option value=\"([01])\"[^>]*>([^<]*)<", page) == [("0", "0 not relevant"), ("1", "1 relevant")]
    assert charlie.get("/c/books/pairs/?label=1").context["filters"].label == "1"
    Collection.objects.filter(pk=books.pk).update(grades=10, relevant_from=5)
    assert set(cells(charlie.get("/c/books/pairs/").text, 4)) - {"none"} == {"0 not relevant", "1"}


def test_each_filter_is_a_chip_whose_link_takes_it_away(charlie):
    page = charlie.get("/c/books/pairs/?q=keys&state=failed&sort=-label").text
    chips = re.findall(r'<li class="badge accent">([^:]+): <bdi>([^<]+)</bdi><a href="\?([^"]*)"', page)
    assert chips == [("Search", "keys", "state=failed&amp;sort=-label"), ("State", "failed", "q=keys&amp;sort=-label")]


def index(books: Collection) -> None:
    full_text.index_documents(books.pk, lambda _done, _total: None, lambda: False)


# A longer word may begin with a term, and titles are searched, too.
TERMS = {"hashable": 8, "hash": 8, "HASHABLE elements": 4, "elements nowhere": 0, "可变对象": 3, "映射类型": 3,
         "'); DROP TABLE": 0, "a & !b": 0, "...": 0}  # fmt: skip


def test_texts_and_titles_of_documents_are_searched_by_their_terms_frequent_ones_as_rare_ones(
    books, charlie, monkeypatch
):
    index(books)
    for q, count in TERMS.items():
        assert len(listed(charlie.get("/c/books/pairs/", {"q": q}).text)) == count, q
    rows = {sort: listed(charlie.get(f"/c/books/pairs/?q=hashable&sort={sort}").text) for sort in ("", "-label")}
    monkeypatch.setattr(pairs, "LISTED_DOCUMENTS", 2)
    for sort, same in rows.items():
        assert listed(charlie.get(f"/c/books/pairs/?q=hashable&sort={sort}").text) == same


def test_documents_are_indexed_once_and_what_was_imported_meanwhile_too(books):
    told: list[tuple[int, int]] = []
    index(books)
    known = DocumentTerms.objects.count()
    assert known == Document.objects.count()
    new = Document.objects.create(
        collection=books, external_id="late", text="Zebra — 'quoted' \\ word", content_hash="0"
    )
    full_text.index_documents(books.pk, lambda done, total: told.append((done, total)), lambda: False)
    assert told == [(1, 1)]
    assert DocumentTerms.objects.get(document=new).terms == "'quoted' 'word' 'zebra'"
    full_text.index_documents(books.pk, lambda done, total: told.append((done, total)), lambda: False)
    assert len(told) == 1
