"""The pages of web searches: estimate and start, results with their documents, what was left out, cancel, go on."""

import csv
import html
import io
import json
import re

import pytest

from annotation.data.web_search import searching
from annotation.data.web_search.searching import WEB_SEARCHES
from annotation.models import AuditEntry, Role
from annotation.models.web_search import SearchedQuery, WebSearch, WebSearchResult
from corpus.models import Document, Pair
from jobs import leases
from tests.factories import make_collection, make_document, make_member, make_query
from tests.reading import hidden_fields

HOME = "/c/ice/import/web/"
OFFLINE = {"judge": "offline-web-search", "limit": "2", "seed": "1"}


@pytest.fixture
def ice(settings, tmp_path, client):
    settings.VAR = tmp_path
    ice = make_collection("ice")
    for place, text in enumerate(("what does a mapping object map", "how is a class defined", "when does a loop end")):
        make_query(ice, text, external_id=f"q{place}")
    client.force_login(make_member(ice, "alice", Role.ADMIN).user)
    return ice


def text_of(response):
    return html.unescape(" ".join(response.content.decode().split()))


def work_off():
    WEB_SEARCHES.perform(leases.claim(WebSearch))


@pytest.mark.django_db(transaction=True)
def test_from_the_estimate_to_documents_that_wait_to_be_judged(ice, client):
    asked = client.post(HOME, {**OFFLINE, "fetch": ""})
    said = text_of(asked)
    assert 'name="confirm"' in said and not WebSearch.objects.exists()
    assert "calls are free" in said and "are sent to the search service" in said
    started = client.post(HOME, {**hidden_fields(asked), "confirm": "1"})
    search = WebSearch.objects.get()
    here = f"{HOME}{search.number}/"
    assert (started["Location"], search.total, search.options["fetch"]) == (here, 2, False)
    assert f'hx-get="{here}"' in text_of(client.get(here))
    assert AuditEntry.objects.filter(act="import.web", details__number=search.number).count() == 1

    work_off()
    news = client.get(here, headers={"HX-Request": "true"})
    said = text_of(news)
    assert news.status_code == 286 and "Queries searched: 2 of 2." in said
    documents = Document.objects.filter(collection=ice)
    pairs = Pair.objects.filter(collection=ice)
    assert 2 <= documents.count() <= pairs.count() and pairs.filter(is_candidate=True).count() == pairs.count()
    assert f"{documents.count()} documents, {pairs.count()} pairs" in said
    assert all(f'href="/c/ice/pairs/{pair.pk}/"' in said for pair in pairs)
    # Addresses of the offline search exist nowhere, so none of them can be opened.
    assert "https://offline-web-search.example/" in said and 'href="https://offline' not in said
    assert "addresses exist nowhere" in text_of(client.get(here))
    table = json.loads(client.get(f"{HOME}?table=web-searches&as=json").content)
    assert table["rows"][0][5:] == [2, pairs.count(), documents.count()]
    assert "Web search 1" in re.sub(r"search \d+", "search 1", text_of(client.get(HOME)))


@pytest.mark.django_db(transaction=True)
def test_every_result_is_in_the_files_with_its_query_address_and_document(ice, client):
    search = WEB_SEARCHES.start_or_join(ice, {"judge": "offline-web-search"})
    work_off()
    here = f"{HOME}{search.number}/?table=results&as="
    rows = list(csv.reader(io.StringIO(client.get(f"{here}csv").content.decode())))
    results = WebSearchResult.objects.filter(searched__search=search).select_related("document")
    assert rows[0][:6] == ["query id", "query", "rank", "title", "address", "document"]
    assert {(row[4], row[5]) for row in rows[1:]} == {(one.url, one.document.external_id) for one in results}
    table = json.loads(client.get(f"{here}json").content)
    assert len(table["rows"]) == results.count() and table["columns"][7] == "from the cache"
    assert "\\begin{table}" in client.get(f"{here}tex").content.decode()
    assert client.get(f"{HOME}{search.number}/?table=other&as=csv").status_code == 404


@pytest.mark.django_db
def test_what_was_left_out_is_counted_and_shown_with_its_reason_and_never_as_a_link(ice, client):
    search = WEB_SEARCHES.start_or_join(ice, {"judge": "offline-web-search"})
    first, _second, third = SearchedQuery.objects.order_by("place")
    SearchedQuery.objects.exclude(pk=third.pk).update(answered_at=search.created_at, cached=True)
    document = make_document(ice, "Ice is thin.", external_id="web-1")
    title = "<b>thin</b>"
    for rank, (url, problem) in enumerate(
        (
            ("http://ice.example/thin", ""),
            ("javascript:alert(1)", '["scheme", {}]'),
            ("http://ice.example/secret", '["robots", {"host": "ice.example"}]'),
            ("http://ice.example/gone", '["status", {"status": 404}]'),
            ("http://ice.example/odd", '["of-later", {}]'),
        ),
        1,
    ):
        of = None if problem else document
        WebSearchResult.objects.create(searched=first, rank=rank, url=url, title=title, document=of, problem=problem)
    WebSearch.objects.update(state="failed", error="Stopped by the call limit: raise it", done=2)
    page = client.get(f"{HOME}{search.number}/")
    said = text_of(page)
    assert re.search(r'href="http://ice.example/thin" rel="[^"]*noopener[^"]*nofollow"', said)
    assert "javascript:alert(1)" in said and 'href="javascript' not in said and "<b>thin" not in page.content.decode()
    assert all(word in said for word in ("robots.txt", "status 404", "of-later", "no results", "call limit"))
    assert said.count("from the cache") == 2
    table = json.loads(client.get(f"{HOME}{search.number}/?table=results&as=json").content)
    assert [row[5] for row in table["rows"]] == ["web-1", None, None, None, None, None]

    client.post(f"{HOME}{search.number}/go-on/", {"max_calls": "50"})
    search.refresh_from_db()
    assert (search.state, search.options["max_calls"]) == ("waiting", 50)
    client.post(f"{HOME}{search.number}/cancel/")
    search.refresh_from_db()
    assert (search.state, search.done, search.total) == ("cancelled", 2, 3)
    assert AuditEntry.objects.filter(act="import.web-control").count() == 2
    assert client.post(f"{HOME}{search.number}/other/").status_code == 404
    client.post(f"{HOME}{search.number}/cancel/")
    assert AuditEntry.objects.filter(act="import.web-control").count() == 2, "it has been cancelled already"


@pytest.mark.django_db
def test_a_collection_without_queries_has_nothing_to_search_for(client, settings, tmp_path):
    settings.VAR = tmp_path
    client.force_login(make_member(make_collection("ice"), "alice", Role.ADMIN).user)
    answer = client.post(HOME, OFFLINE)
    assert answer.status_code == 422 and "no queries to search" in text_of(answer) and not WebSearch.objects.exists()


@pytest.mark.django_db
def test_the_same_search_is_joined_and_another_one_is_begun(ice):
    def start(**options):
        return WEB_SEARCHES.start_or_join(ice, {"judge": "offline-web-search", **options}).pk

    first = start(limit=2, seed=1)
    assert start(limit=2, seed=1, max_calls=5) == first and WebSearch.objects.get().options["max_calls"] == 5
    assert len({first, start(limit=2, seed=1, fetch=True), start(limit=1, seed=1), start()}) == 4
    WebSearch.objects.filter(pk=first).update(state="cancelled")
    assert start(limit=2, seed=1) == first and WebSearch.objects.get(pk=first).state == "waiting"


@pytest.mark.django_db(transaction=True)
def test_a_worker_that_lost_its_lease_adds_nothing(ice, monkeypatch):
    search = WEB_SEARCHES.start_or_join(ice, {"judge": "offline-web-search"})
    held, real = leases.claim(WebSearch), searching._read_pages

    def read_and_cancel(*args):
        outcomes = real(*args)
        WEB_SEARCHES.cancel(search)
        return outcomes

    monkeypatch.setattr(searching, "_read_pages", read_and_cancel)
    WEB_SEARCHES.perform(held)
    search.refresh_from_db()
    assert search.state == "cancelled" and not Document.objects.filter(collection=ice).exists()
    assert not WebSearchResult.objects.exists()
    monkeypatch.undo()
    WEB_SEARCHES.go_on(search)
    work_off()
    search.refresh_from_db()
    assert search.state == "ready" and Document.objects.filter(collection=ice).exists()
