"""Endpoints of each kind ask a look-alike of their engine: hits come back in order, and what it refuses says why."""

import asyncio
import json
import re
from typing import Any

import pytest

from benchmark.search_endpoints.hits import HitMapping
from benchmark.search_endpoints.kinds import KINDS
from benchmark.search_endpoints.options import EndpointOptions
from benchmark.search_endpoints.searching import EndpointSession, SearchAnswer, SearchFailed
from corpus.url_fetch.client import WebResponse
from tests.search_engines import LOOK_ALIKES
from tests.search_engines.base import BOOKS, KEY, USER, LookAlike

QUERY, K = 'a "book" that tells of red shoes & rain', 22  # More hits than any engine returns by itself.
FIRST = [25, 2, 3, 4, 5, 6, 8, 7]
"""Numbers of the books that share most words with the query: all four, then one each, then none of these."""

BEHIND = {"elasticsearch", "meilisearch", "opensearch", "solr", "typesense", "weaviate"}
"""Kinds whose look-alike answers as an earlier version than the newest that the facts name."""


@pytest.fixture
def engine(request, settings, monkeypatch):
    """The look-alike of the kind that the test names; its key and its user's name are in the environment."""
    monkeypatch.setenv("ENGINE_KEY", KEY)
    monkeypatch.setenv("ENGINE_USER", USER)
    with LOOK_ALIKES[request.param]().running() as engine:
        settings.SEARCH_HOSTS = frozenset({f"127.0.0.1:{engine.port}"})
        yield engine


every_kind = pytest.mark.parametrize("engine", LOOK_ALIKES, indirect=True)


def settings_of(engine: LookAlike, **keys: Any) -> dict[str, Any]:
    base_url = f"http://127.0.0.1:{engine.port}"
    parameters = {**engine.options.get("parameters", {}), **keys.pop("parameters", {})}
    values = {"name": "books", "kind": engine.kind, "base_url": base_url, **engine.options, **keys}
    return EndpointOptions.read({**values, "parameters": parameters}, strict=True).complete_settings()


def search(settings: dict[str, Any], query: str = QUERY, k: int = K) -> SearchAnswer:
    async def ask() -> SearchAnswer:
        async with EndpointSession(settings, connections=1) as session:
            return await session.search(query, k)

    return asyncio.run(ask())


def failure_of(settings: dict[str, Any], k: int = K) -> SearchFailed:
    """Return the failure of a search: one line without the key."""
    with pytest.raises(SearchFailed) as failure:
        search(settings, k=k)
    assert str(failure.value) and "\n" not in str(failure.value) and KEY not in str(failure.value)
    return failure.value


def check_hits(engine: LookAlike, answer: SearchAnswer) -> None:
    """Hold the hits of QUERY against the books."""
    books = {engine.identity(book): book for book in BOOKS}
    hits = answer.page.hits
    numbers = [books[hit.id].number for hit in hits]
    # Chroma finds and does not rank.
    assert numbers == list(range(2, K + 2)) if engine.kind == "chroma" else numbers[: len(FIRST)] == FIRST
    assert len(hits) == len({*numbers}) == K
    assert [(hit.title, hit.text) for hit in hits] == [(books[hit.id].title, books[hit.id].text) for hit in hits]
    scores = [hit.score for hit in hits]
    if engine.kind in ("chroma", "algolia"):
        assert scores == [None] * K
    else:
        assert None not in scores and scores == sorted(scores, reverse=True) and scores[0] != scores[-1]


def numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def test_every_kind_has_a_look_alike_of_the_version_that_its_facts_name():
    assert LOOK_ALIKES.keys() == KINDS.keys()
    for kind, engine in LOOK_ALIKES.items():
        documented = KINDS[kind].documented
        if kind in BEHIND:
            assert numbers(engine.version) < numbers(documented), f"{kind} is behind no longer"
        else:
            assert engine.version == documented, kind
        assert engine.documentation.startswith("https://")


@every_kind
def test_a_query_comes_back_as_hits_in_order(engine):
    check_hits(engine, search(settings_of(engine)))
    assert search(settings_of(engine), "xylophone").page.hits == []


@pytest.mark.parametrize("engine", [kind for kind in KINDS if KINDS[kind].settings.partial], indirect=True)
def test_an_engine_that_ran_out_of_time_is_believed(engine):
    settings = settings_of(engine)
    assert not search(settings).page.is_partial
    engine.is_short_of_time = True
    answer = search(settings)
    assert answer.page.is_partial and answer.page.hits
    (problem,) = HitMapping(settings).problems(json.loads(answer.raw), answer.page)
    assert problem[0] == "partial"


@every_kind
def test_what_the_engine_refuses_says_what_to_change(engine):
    mistake, code = engine.mistakes
    assert failure_of(settings_of(engine, **mistake)).code == code
    failure = failure_of(settings_of(engine, path="/elsewhere/{{index}}"))
    assert failure.code in ("status-404", "status-400"), failure
    if engine.kind != "http":
        failure = failure_of(settings_of(engine, index="Nowhere"))
        assert failure.code == engine.unknown_index, failure


@every_kind
def test_a_key_that_is_missing_or_wrong_is_named(engine, monkeypatch):
    variables = {"api_key_env": "", "user_env": "", "password_env": "", "bearer_env": "", "header_env": {}}
    assert failure_of(settings_of(engine, **variables)).code == engine.missing_key
    monkeypatch.setenv("ENGINE_KEY", "another-key-than-the-engines")
    failure = failure_of(settings_of(engine))
    assert failure.code == engine.wrong_key and "ENGINE_KEY" in str(failure)


@every_kind
def test_a_body_that_is_no_json_and_another_method_are_refused(engine):
    async def send(method: str, body: bytes) -> WebResponse:
        async with EndpointSession(settings_of(engine), connections=1) as session:
            request, _body = session.build_request(QUERY, K)
            return await session.client.send(method, request.url, headers=session.headers, content=body)

    answer = asyncio.run(send("POST", b'{"a": '))
    assert answer.status == 400 and json.loads(answer.body), "the engine's own error"
    assert asyncio.run(send("PUT", b"{}")).status in (404, 405)


@every_kind
def test_a_depth_beyond_the_engines_most_is_refused_before_and_by_the_engine(engine):
    settings = settings_of(engine)
    assert failure_of(settings, KINDS[engine.kind].max_k + 1).code == "depth"
    if engine.most is not None:
        assert engine.most == KINDS[engine.kind].max_k
        assert failure_of({**settings, "max_k": 10**6}, engine.most + 1).code == engine.above_most


@every_kind
def test_no_name_in_a_request_or_in_a_mapping_can_be_another(engine):
    """Plant a fault: with another name in its place the engine refuses, or its hits are others."""
    settings = settings_of(engine)
    faults = [
        {**settings, "body": settings["body"].replace(f'"{name}":', f'"{name}_":')}
        for name in re.findall(r'"(\w+)":', settings["body"])
        if name not in engine.optional
    ]
    faults += [{**settings, name: "elsewhere"} for name in ("id", "title", "score") if settings[name]]
    faults += [{**settings, "text": ["elsewhere"]}]
    for fault in faults:
        with pytest.raises((SearchFailed, AssertionError)):
            check_hits(engine, search(fault))
    assert failure_of({**settings, "hits": "elsewhere.hits"}).code == "mapping"
