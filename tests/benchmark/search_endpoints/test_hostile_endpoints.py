"""No endpoint makes this server ask an address inside: as base URL, by a redirect, or by a name's address."""

import asyncio
import json

import pytest

from benchmark.search_endpoints.options import EndpointOptions
from benchmark.search_endpoints.searching import EndpointSession, SearchAnswer, SearchFailed
from corpus.errors import BadOption
from tests.open_web import HOSTILE, PUBLIC, open_web

ANSWER = json.dumps({"results": [{"id": "d1", "name": "Ice", "text": "Ice creeps."}]})


@pytest.fixture
def web(monkeypatch):
    with open_web(monkeypatch) as found:
        found.page("/search", ANSWER, Content_Type="application/json")
        yield found


def endpoint(base_url: str) -> EndpointOptions:
    return EndpointOptions(
        name="shop", kind="http", base_url=base_url, path="/search", body='{"q": "{{query}}", "n": {{k}}}',
        hits="results[]", id="id", title="name", text=["text"], header_env={"Authorization": "SHOP_AUTH"},
    )  # fmt: skip


def search(base_url: str) -> SearchAnswer:
    """The answer of an endpoint that was stored before its host was refused."""
    settings = endpoint("https://ice.example").complete_settings() | {"base_url": base_url}

    async def run() -> SearchAnswer:
        async with EndpointSession(settings) as session:
            return await session.search("ice", 5)

    return asyncio.run(run())


@pytest.mark.parametrize("host", HOSTILE)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_hostile_address_is_no_endpoint(web, monkeypatch, settings, scheme, host):
    settings.SEARCH_HOSTS = frozenset({"inside.example:80"})
    monkeypatch.setenv("SHOP_AUTH", "Bearer not-a-secret-of-anybody")
    web.names |= {"trap.example": [PUBLIC, HOSTILE[host]], "inside.example": ["10.0.0.5"]}
    for port in ("", ":9200"):
        with pytest.raises(BadOption) as refused:
            endpoint(f"{scheme}://{host}{port}")
        assert refused.value.problems[0][0] == "base_url"
        for base_url in (f"{scheme}://{host}{port}", f"https://trap.example{port}"):
            with pytest.raises(SearchFailed) as failed:
                search(base_url)
            assert (failed.value.code, failed.value.is_retryable, web.asked) == ("not-public", False, [])
        web.redirect("/search", f"{scheme}://{host}{port}/_cluster", status=307)
        with pytest.raises(SearchFailed) as failed:
            search("http://inside.example")
        assert (failed.value.code, web.asked) == ("not-public", [("inside.example", "/search")])
        web.asked.clear()


def test_an_address_that_the_owner_allowed_is_an_endpoint(web, monkeypatch, settings):
    monkeypatch.setenv("SHOP_AUTH", "Bearer not-a-secret-of-anybody")
    settings.SEARCH_HOSTS = frozenset({"127.0.0.1:9200", "inside.example:80"})
    web.names["inside.example"] = ["10.0.0.5"]
    for base_url in ("http://127.0.0.1:9200", "http://inside.example"):
        endpoint(base_url)
        assert [hit.id for hit in search(base_url).page.hits] == ["d1"]
    assert web.asked == [("127.0.0.1:9200", "/search"), ("inside.example", "/search")]
    assert {headers["authorization"] for headers in web.headers} == {"Bearer not-a-secret-of-anybody"}
    with pytest.raises(BadOption):
        endpoint("http://127.0.0.1:9201")


def test_keys_leave_by_https_alone_where_the_host_is_not_the_owners(web, monkeypatch):
    monkeypatch.setenv("SHOP_AUTH", "Bearer not-a-secret-of-anybody")
    with pytest.raises(SearchFailed) as failed:
        search("http://ice.example")
    assert (failed.value.code, web.asked) == ("plain-http", [])
    assert "QUORUM_SEARCH_HOSTS=ice.example:80" in str(failed.value)
