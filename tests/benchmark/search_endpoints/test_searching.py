"""A session asks an endpoint: its keys stay hidden, its rate is held, and each failure says what to change."""

import asyncio
import json
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from actions.options import UNSTORABLE
from benchmark.search_endpoints import searching
from benchmark.search_endpoints.options import EndpointOptions
from benchmark.search_endpoints.searching import EndpointSession, SearchAnswer, SearchFailed
from benchmark.search_endpoints.services import ask_endpoint
from corpus.url_fetch.client import WebResponse
from tests.benchmark.search_endpoints.conftest import KEY

SECRET = KEY.removeprefix("Bearer ")


def settings_of(shop: dict[str, Any], **keys: Any) -> dict[str, Any]:
    return EndpointOptions.read({**shop, **keys}, strict=True).complete_settings()


async def search(settings: dict[str, Any], query: str, k: int = 3) -> SearchAnswer:
    async with EndpointSession(settings) as session:
        return await session.search(query, k)


def failure_of(settings: dict[str, Any], query: str = "boots", k: int = 3) -> SearchFailed:
    with pytest.raises(SearchFailed) as failure:
        asyncio.run(search(settings, query, k))
    assert "\n" not in str(failure.value) and SECRET not in str(failure.value)
    return failure.value


def test_a_query_comes_back_as_hits(engine, shop):
    answer = asyncio.run(search(settings_of(shop), 'warm "boots"', 2))
    request = engine.requests[0]
    sent = json.loads(request.body)
    assert (request.path, sent, request.headers["authorization"]) == ("/search", {"q": 'warm "boots"', "n": 2}, KEY)
    assert [(hit.id, hit.title, hit.score) for hit in answer.page.hits] == [("1", "Boot 1", 8.5), ("2", "Boot 2", 7.5)]
    assert answer.page.hits[0].text == "Boot 1\nWarm & dry, 1"
    assert SECRET not in repr(answer.request)
    answer = asyncio.run(search(settings_of(shop, body='{"q": "{{query}}", "n": 5}'), "boots", 2))
    assert len(answer.page.hits) == 2, "no more than asked for"
    assert failure_of({**settings_of(shop), "max_k": 2}).code == "depth" and len(engine.requests) == 2


def test_a_key_that_the_engine_repeats_is_not_kept(engine, shop):
    engine.plan("echo", {"results": [{"id": 1, "name": f"sent {KEY}"}]})
    answer = asyncio.run(search(settings_of(shop), "echo"))
    assert SECRET not in answer.page.hits[0].text and SECRET.encode() not in answer.raw
    engine.plan("refused", {"error": f"no such key: {SECRET}"}, status=400)
    assert "no such key" in str(failure_of(settings_of(shop), "refused"))


def escape(text: str) -> str:
    return "".join(f"\\u{ord(letter):04X}" for letter in text)


@pytest.mark.parametrize(
    "spell",
    [
        lambda key: key.replace("/", "\\/"),  # As PHP writes JSON.
        lambda key: key.replace("&", "\\u0026"),  # As Go does.
        escape,
    ],
)
def test_a_key_is_not_kept_however_the_answer_spells_it(engine, shop, monkeypatch, spell):
    key = "c2hvcDpz/ZWNy&ZXQ+/x=="
    engine.key = f"Bearer {key}"
    monkeypatch.setenv("SHOP_TOKEN", key)
    settings = settings_of(shop, header_env={}, bearer_env="SHOP_TOKEN")
    engine.plan("echo", f'{{"results": [{{"id": 1, "name": "sent {spell(key)}"}}]}}')
    answer = asyncio.run(search(settings, "echo"))
    assert key not in answer.page.hits[0].title and answer.page.hits[0].title.startswith("sent ")
    engine.plan("refused", f'{{"error": "no such key: {spell(key)}"}}', status=400)
    assert key not in str(failure_of(settings, "refused"))


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (('{"error": "bad\\u0000 word\\ud800"}', 400), "status-400"),
        (('{"hits\\u0000": 1, "\\udc00": 2}',), "mapping"),
        (('{"results": [{"id": 1, "name": ' + "[" * 900 + "]" * 900 + "}]}",), "nested"),
    ],
)
def test_the_line_of_a_failure_can_be_stored(engine, shop, answer, code):
    engine.plan("odd", *answer)
    failure = failure_of(settings_of(shop), "odd")
    assert failure.code == code and failure.answer is not None
    assert UNSTORABLE.search(str(failure)) is None


@pytest.mark.parametrize(
    ("answer", "code", "word", "is_retryable"),
    [
        (("<!doctype html><p>Sign in</p>", 200, "text/html"), "html", "HTML", False),
        (("hello", 200, "text/plain"), "not-json", "JSON", False),
        (("",), "empty", "empty", False),
        (('{"items": {"list": []}}',), "mapping", "items.list", False),
        (('{"failed": "index is closed"}',), "refused", "index is closed", False),
        (('{"error": {"root_cause": [{"reason": "no such index"}]}}', 404), "status-404", "no such index", False),
        (('{"error": {"msg": "undefined"}}', 400), "status-400", "undefined", False),
        (("{}", 429), "status-429", "429", True),
        (("<html>", 503, "text/html"), "status-503", "503", True),
    ],
)
def test_an_answer_without_hits_says_what_to_change(engine, shop, answer, code, word, is_retryable):
    engine.plan("odd", *answer)
    failure = failure_of(settings_of(shop, error="failed"), "odd")
    assert (failure.code, failure.is_retryable) == (code, is_retryable)
    assert word in str(failure)


def test_a_refused_key_names_its_variable(engine, shop, monkeypatch):
    monkeypatch.setenv("SHOP_AUTH", "another key than the engine's")
    failure = failure_of(settings_of(shop))
    assert failure.code == "status-401" and "SHOP_AUTH" in str(failure) and "missing authentication" in str(failure)
    monkeypatch.delenv("SHOP_AUTH")
    assert failure_of(settings_of(shop)).code == "variable"
    monkeypatch.setenv("SHOP_AUTH", "two\nlines")
    assert failure_of(settings_of(shop)).code == "variable"
    assert len(engine.requests) == 1


def test_a_host_that_is_slow_or_another_or_no_tls_is_named(engine, shop):
    engine.delay = 1.0
    failure = failure_of(settings_of(shop, timeout_s=0.3))
    assert (failure.code, failure.is_retryable) == ("slow", True)
    settings = settings_of(shop)
    assert failure_of({**settings, "base_url": "http://127.0.0.1:1"}).code == "not-public"
    assert "https" in str(failure_of({**settings, "base_url": engine.address.replace("http", "https")}))


def test_an_answer_or_an_address_that_is_too_long_says_what_to_change(engine, shop, monkeypatch):
    monkeypatch.setattr(searching, "BYTES", 1_000_000)
    engine.plan("long", {"results": [{"id": 1, "name": "x" * 1_000_000}]})
    failure = failure_of(settings_of(shop), "long")
    assert failure.code == "large" and "1 MB" in str(failure) and "fewer" in str(failure)
    settings = settings_of({**shop, "method": "GET", "body": "", "path": "/search?q={{query}}"})
    failure = failure_of(settings, "boots " * 5_000)
    assert failure.code == "address-odd" and "POST" in str(failure)


def test_an_engine_says_when_to_come_back_in_seconds_or_as_a_date(shop):
    session = EndpointSession(settings_of(shop))
    request, _body = session.build_request("boots", 3)

    def wait_after(value: str) -> float | None:
        with pytest.raises(SearchFailed) as failure:
            session.read(request, WebResponse("", 503, {"retry-after": value}, b"{}", 0.1), 3)
        return failure.value.wait_s

    assert (wait_after("7"), wait_after("-5"), wait_after("soon")) == (7.0, 0.0, None)
    wait = wait_after(format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True))
    assert wait is not None and 25 <= wait <= 30


def test_basic_bearer_and_api_keys_are_sent_as_engines_expect_them(engine, shop, monkeypatch):
    monkeypatch.setenv("SHOP_USER", "alice")
    monkeypatch.setenv("SHOP_PASSWORD", "correct horse battery")

    def sent(**keys: Any) -> dict[str, str]:
        failure_of(settings_of(shop, header_env={}, **keys))
        return engine.requests[-1].headers

    assert sent(user_env="SHOP_USER", password_env="SHOP_PASSWORD")["authorization"].startswith("Basic YWxpY2U6")
    assert sent(bearer_env="SHOP_PASSWORD")["authorization"] == "Bearer correct horse battery"
    headers = {**settings_of(shop, header_env={}), "api_key_env": "SHOP_PASSWORD", "key_header": "api-key"}
    failure_of(headers)
    assert engine.requests[-1].headers["api-key"] == "correct horse battery"


def test_requests_keep_to_the_rate(engine, shop):
    async def search_all() -> None:
        async with EndpointSession(settings_of(shop, requests_per_minute=600)) as session:
            await asyncio.gather(*(session.search("boots", 1) for _number in range(5)))

    start = time.monotonic()
    asyncio.run(search_all())
    assert time.monotonic() - start >= 0.4


def test_a_test_has_the_request_and_what_to_change(engine, shop):
    engine.plan("poor", {"results": [{"id": 1}, {"id": 1}, {"name": "x"}]})
    test = asyncio.run(ask_endpoint(settings_of(shop), "poor", 3))
    assert [problem.partition(":")[0] for problem in test.problems] == ["id", "text", "id"]
    assert not test.is_usable and test.request is not None and test.request.body == '{"q": "poor", "n": 3}'
    engine.plan("none", {"results": []})
    assert len(asyncio.run(ask_endpoint(settings_of(shop), "none", 3)).problems) == 1
