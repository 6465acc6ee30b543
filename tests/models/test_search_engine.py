"""A real Chroma with 1,000 documents is asked as a search endpoint, and its look-alike answers as it does."""

import asyncio
import json
import re
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from benchmark.models import Run, SearchEndpoint
from benchmark.runs import rankings
from benchmark.search_endpoints.options import EndpointOptions
from benchmark.search_endpoints.services import ask_endpoint
from corpus.models import Document
from tests.factories import make_collection, make_query
from tests.rankings import start_run, work_on
from tests.search_engines.base import BOOKS, KEY
from tests.search_engines.chroma import COLLECTION, Chroma

COLLECTIONS = "/api/v2/tenants/default_tenant/databases/default_database/collections"
COLOURS = ("Red", "green", "blue", "grey", "white")
THINGS = ("shoes", "hats", "coats", "boats", "lamps", "clocks", "trains", "maps")
TEXTS = {
    f"d{number}": f"{COLOURS[number % 5]} {THINGS[number % 8]} of “shop” {number % 10}, C++ & more, no. {number}"
    for number in range(1000)
}
QUERIES = [*(f"{thing} no. {number}" for number, thing in enumerate(THINGS)), *COLOURS, "rED sHoes", '"shop" (8',
           "C++ & more", "1|2", "no. 999", "violet", "[a-z]"]  # fmt: skip


def send(url: str, document: Any) -> tuple[int, Any]:
    """POST JSON, with a key that Chroma's own server does not look at: status, and the answer; None for no JSON."""
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    try:
        with urlopen(Request(url, body, {"Content-Type": "application/json", "X-Chroma-Token": KEY})) as answer:
            status, text = answer.status, answer.read()
    except HTTPError as error:
        with error:
            status, text = error.code, error.read()
    return status, json.loads(text) if text else None


def make_chroma_collection(base_url: str, name: str, texts: dict[str, str], titles: dict[str, str]) -> str:
    """Put documents with ready-made vectors into a new collection of Chroma; its id."""
    status, collection = send(f"{base_url}{COLLECTIONS}", {"name": name})
    assert status == 200, collection
    documents = {
        "ids": [*texts],
        "documents": [*texts.values()],
        "embeddings": [[1.0, place / len(texts)] for place in range(len(texts))],
        "metadatas": [{"title": titles[name]} for name in texts],
    }
    assert send(f"{base_url}{COLLECTIONS}/{collection['id']}/add", documents)[0] == 201
    return str(collection["id"])


def expected_hits(query: str, depth: int) -> list[str]:
    """Return the documents that contain the query or one of its words, in the order in which they were stored."""
    words = re.findall(r"\w+", query)
    hits = [
        name for name, text in TEXTS.items() if query in text or any(re.search(f"(?i){word}", text) for word in words)
    ]
    return hits[:depth]


@pytest.mark.django_db
def test_a_run_of_20_queries_from_1000_documents(chroma_server, settings):
    settings.SEARCH_HOSTS = frozenset({chroma_server.removeprefix("http://")})
    index = make_chroma_collection(chroma_server, "shop", TEXTS, {name: f"Number {name}" for name in TEXTS})
    values = {"name": "chroma", "kind": "chroma", "base_url": chroma_server, "index": index}
    options = EndpointOptions.read(values, strict=True)
    endpoint = SearchEndpoint.objects.create(name="chroma", kind="chroma", settings=options.complete_settings())
    test = asyncio.run(ask_endpoint(endpoint.settings, "shoes", 10))
    assert test.is_usable and not test.problems and not test.failure
    missing = {**endpoint.settings, "index": COLLECTION}
    assert "does not exist" in asyncio.run(ask_endpoint(missing, "shoes", 10)).failure

    collection = make_collection("shop")
    for number, text in enumerate(QUERIES):
        make_query(collection, text, external_id=f"q{number}")
    run = work_on(start_run(collection, "search", "first", endpoint="chroma", depth=10))
    assert (run.state, run.done, run.error) == ("ready", 20, "")
    ranked = rankings.as_run(Run.objects.get(pk=run.pk))
    for number, query in enumerate(QUERIES):
        hits = ranked[f"q{number}"]
        assert sorted(hits, key=lambda name: -hits[name]) == expected_hits(query, 10), query
    assert [query for number, query in enumerate(QUERIES) if not ranked[f"q{number}"]] == ["violet"]
    assert run.counts["empty"] == 1 and run.counts["without_text"] == run.counts["without_id"] == 0
    stored = Document.objects.filter(collection=collection).values_list("external_id", "text", "title")
    assert run.counts["new"] == len(stored)
    assert all((text, title) == (TEXTS[name], f"Number {name}") for name, text, title in stored)


def test_the_look_alike_answers_as_the_engine_does(chroma_server):
    engine = Chroma()
    texts, titles = ({engine.identity(book): getattr(book, part) for book in BOOKS} for part in ("text", "title"))
    index = make_chroma_collection(chroma_server, "books", texts, titles)
    bodies: list[Any] = [
        {},
        {"where_document": {"$contains": "red"}, "limit": 3, "include": ["documents", "metadatas"]},
        {"where_document": {"$or": [{"$contains": "no such"}, {"$regex": "(?i)RAIN"}]}},
        {"where_document": {"$or": [{"$contains": "sea"}]}, "include": ["metadatas"]},
        {"where_document": {"$has": "red"}},
        {"colour": "red", "limit": 1},
        {"limit": -1},
        {"limit": "two"},
        {"include": ["colours"]},
        b"{",
    ]
    with engine.running():
        fake = f"http://127.0.0.1:{engine.port}"
        for body in bodies:
            real_status, real = send(f"{chroma_server}{COLLECTIONS}/{index}/get", body)
            status, answer = send(f"{fake}{COLLECTIONS}/{COLLECTION}/get", body)
            if status != 200:
                real, answer = real["error"], answer["error"]
            assert (status, answer) == (real_status, real), body
        for path in ("nowhere/get", "00000000-0000-4000-8000-000000000000/get"):
            assert send(f"{fake}{COLLECTIONS}/{path}", {}) == send(f"{chroma_server}{COLLECTIONS}/{path}", {})
        for base_url, collection in ((fake, COLLECTION), (chroma_server, index)):
            assert send(f"{base_url}{COLLECTIONS}/{collection}/find", {})[0] == 404
