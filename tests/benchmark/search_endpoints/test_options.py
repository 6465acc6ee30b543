"""What an endpoint can be told, and what each kind fills in."""

import json
import re
from typing import Any, get_args
from urllib.parse import urlsplit

import pytest

from benchmark.search_endpoints.kinds import KINDS, KindName
from benchmark.search_endpoints.options import EndpointOptions, request_values
from benchmark.search_endpoints.templates import render_body, render_path
from corpus.errors import BadOption
from judges.presets import PRESETS

KNOWN = [name for name in get_args(KindName) if name != "http"]
NEEDED = {"application": "APP"}
PROVIDER_KEYS = {preset.key_env for preset in PRESETS.values()} - {""} | {"COHERE_API_KEY", "WANDB_API_KEY"}


def read(**keys: Any) -> EndpointOptions:
    return EndpointOptions.read(
        {"name": "shop", "base_url": "https://93.184.215.14", "index": "goods", **keys}, strict=True
    )


def refusal_of(**keys: Any) -> str:
    with pytest.raises(BadOption) as refusal:
        read(**keys)
    return refusal.value.problems[0][0]


@pytest.mark.parametrize("kind", KNOWN)
def test_a_kind_knows_its_request_and_its_hits(kind):
    settings = read(kind=kind, parameters=NEEDED).complete_settings()
    values = request_values(settings, 'red "boots" \\', 7)
    assert "goods" in render_path(settings["path"], values) + render_body(settings["body"], values)
    assert "boots" in json.dumps(json.loads(render_body(settings["body"], values)))
    assert settings["hits"] and settings["id"] and settings["text"]


@pytest.mark.parametrize("kind", get_args(KindName))
def test_a_kind_says_where_its_facts_are_from(kind):
    assert len(KINDS[kind].facts) >= 2
    for fact in KINDS[kind].facts:
        assert fact.what.endswith(".") and urlsplit(fact.source).scheme == "https"
        assert re.fullmatch(r"2026-\d\d-\d\d", fact.date)


def test_the_settings_that_are_stored_need_no_kind():
    own = read(
        kind="opensearch", text=["_source.body"], template='{"query": {"match": {"body": "{{query}}"}}, "size": {{k}}}'
    )
    settings = own.complete_settings()
    assert (settings["method"], settings["path"], settings["hits"]) == ("POST", "/{{index}}/_search", "hits.hits")
    assert "match" in settings["body"] and settings["text"] == ["_source.body"] and "template" not in settings


@pytest.mark.parametrize(
    ("option", "keys"),
    [
        ("x", {"kind": "opensearch", "x": 1}),
        ("kind", {"kind": "bing"}),
        ("name", {"kind": "opensearch", "name": "a b"}),
        ("index", {"kind": "opensearch", "index": ""}),
        ("method", {"kind": "opensearch", "method": "GET"}),
        ("body", {"kind": "opensearch", "body": "{}"}),
        ("template", {"kind": "opensearch", "template": '{"q": "{{query}}"'}),
        ("template", {"kind": "opensearch", "template": '{"q": "all"}'}),
        ("template", {"kind": "http", "template": "{}"}),
        ("parameters", {"kind": "opensearch", "parameters": {"query": "x"}}),
        ("parameters", {"kind": "algolia"}),
        ("path", {"kind": "opensearch", "path": "search"}),
        ("path", {"kind": "opensearch", "path": "/{{nothing}}"}),
        ("hits", {"kind": "opensearch", "hits": "a["}),
        ("text", {"kind": "opensearch", "text": ["a", "b["]}),
        ("api_key_env", {"kind": "solr", "api_key_env": "SHOP_KEY"}),
        ("api_key_env", {"kind": "qdrant", "api_key_env": "not a name"}),
        ("api_key_env", {"kind": "qdrant", "api_key_env": "OPENAI_API_KEY"}),
        ("header_env", {"kind": "qdrant", "header_env": {"X-Key": "QUORUM_SECRET_KEY"}}),
        ("bearer_env", {"kind": "qdrant", "bearer_env": "DATABASE_URL"}),
        *(("bearer_env", {"kind": "qdrant", "bearer_env": name}) for name in sorted(PROVIDER_KEYS)),
        ("header_env", {"kind": "qdrant", "header_env": {"Content-Length": "SHOP_KEY"}}),
        ("password_env", {"kind": "solr", "user_env": "SHOP_USER"}),
        ("bearer_env", {"kind": "solr", "user_env": "A", "password_env": "B", "bearer_env": "C"}),
        ("headers", {"kind": "solr", "headers": {"Authorization": "Bearer abc"}}),
        ("headers", {"kind": "solr", "headers": {"X-Api-Key": "abc"}}),
        ("parameters", {"kind": "solr", "parameters": {"api_key": "abc"}}),
        ("path", {"kind": "solr", "path": "/solr/x/query?wt=json&access_token=abc"}),
        ("template", {"kind": "solr", "template": '{"q": "{{query}}", "api_key": "abc"}'}),
        ("headers", {"kind": "solr", "headers": {"Host": "elsewhere"}}),
        ("headers", {"kind": "solr", "headers": {"a": "b\r\nc: d"}}),
        ("timeout_s", {"kind": "solr", "timeout_s": 0}),
        ("requests_per_minute", {"kind": "solr", "requests_per_minute": 0}),
    ],
)
def test_what_does_not_fit_names_its_option(option, keys):
    assert refusal_of(**keys) == option


@pytest.mark.parametrize(
    "address",
    [
        *("http://127.0.0.1:9200", "http://user:secret@example.org", "ftp://example.org", "example.org"),
        *("http://example.org/?q=1", "http://example.org/#a", "http://exa mple.org", "http://example.org:99999"),
    ],
)
def test_an_address_to_which_nothing_may_go_is_refused(address):
    assert refusal_of(kind="opensearch", base_url=address) == "base_url"


def test_an_allowed_private_address_is_taken(settings):
    settings.SEARCH_HOSTS = frozenset({"127.0.0.1:9200"})
    assert read(kind="opensearch", base_url="http://127.0.0.1:9200/es/").base_url == "http://127.0.0.1:9200/es"


def test_lines_of_a_form_are_lists_and_tables():
    form = {"name": "shop", "kind": "solr", "base_url": "https://93.184.215.14", "index": "goods"}
    lines = {
        "text": "name\r\n\n description ",
        "headers": "X-Tenant: a = b",
        "parameters": "fields = title^2\nrows = 3",
    }
    options = EndpointOptions.read({**form, **lines})
    assert (options.text, options.headers) == (["name", "description"], {"X-Tenant": "a = b"})
    assert options.parameters == {"fields": "title^2", "rows": 3}
    with pytest.raises(BadOption) as refusal:
        EndpointOptions.read({**form, "headers": "X-Tenant"})
    assert refusal.value.problems[0][0] == "headers"
