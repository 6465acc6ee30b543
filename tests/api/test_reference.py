"""The API reference: a page for each resource, and examples that are the requests of their operations."""

import json
import re
import shlex
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from django.test import Client
from django.utils import translation
from jsonschema import Draft202012Validator

from annotation.models import Role
from api.reference import examples
from api.reference.document import ApiOperation, Reference
from api.urls import api
from quorum_client import Quorum
from tests.client.test_client import client_of, one_connection  # noqa: F401
from tests.factories import make_collection, make_member, make_pair
from tests.site.untranslated import texts_with

UPLOADED_IN_PARTS = {"post-imports"}
"""Operations in place of which the client's method sends the others that do the same."""


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return api.get_openapi_schema(path_prefix="/api/v1/")


@pytest.fixture(scope="module")
def operations(document: dict[str, Any]) -> list[ApiOperation]:
    return [operation for resource in Reference(document).resources.values() for operation in resource.operations]


def parts_of(operation: ApiOperation) -> tuple[str, str, Any]:
    """Return the method, the address and the body that the operation's curl command sends."""
    words = shlex.split(operation.curl.replace("\\\n", ""))
    method = words[words.index("-X") + 1] if "-X" in words else "HEAD" if "--head" in words else "GET"
    address = next(word for word in words if word.startswith("$QUORUM_URL")).removeprefix("$QUORUM_URL")
    return method, address, json.loads(words[words.index("-d") + 1]) if "-d" in words else None


def test_every_operation_of_the_document_is_on_one_page_and_has_an_anchor(document, operations):
    listed = sorted((operation.method.lower(), operation.path) for operation in operations)
    assert listed == sorted((method, path) for path, methods in document["paths"].items() for method in methods)
    assert len({operation.key for operation in operations}) == len(operations) > 90


@pytest.mark.django_db
def test_every_curl_command_reaches_its_operation(operations: list[ApiOperation]) -> None:
    client = Client(headers={"host": "testserver"})
    for operation in operations:
        method, address, _body = parts_of(operation)
        assert method == operation.method
        assert re.fullmatch(re.sub(r"{\w+}", "[^/]+", operation.path.replace(".", r"\.")), address)
        # Without a token each operation answers 401; an address or method without one is a 404 or 405.
        assert client.generic(method, address).status_code == 401, operation.curl


def test_every_body_of_an_example_is_what_the_document_describes(document, operations):
    checked = 0
    for operation in operations:
        _method, _address, body = parts_of(operation)
        content = document["paths"][operation.path][operation.method.lower()].get("requestBody", {}).get("content", {})
        if schema := content.get("application/json", {}).get("schema"):
            # References of the schema are to the document's own components.
            validator = Draft202012Validator({**schema, "components": document["components"]})
            assert [error.message for error in validator.iter_errors(body)] == [], operation.curl
            checked += 1
    assert checked > 25


def test_every_python_example_sends_what_curl_sends(document, operations, monkeypatch, tmp_path):
    requests: list[httpx2.Request] = []
    schemas = document["components"]["schemas"]

    def answer(request: httpx2.Request) -> httpx2.Response:
        requests.append(request)
        address = urlsplit(str(request.url)).path
        headers = {"Location": f"{address}/1", "Upload-Offset": str(len(request.read()))}
        path = next(
            path
            for path, methods in document["paths"].items()
            if request.method.lower() in methods and re.fullmatch(re.sub(r"{\w+}", "[^/]+", path), address)
        )
        responses = document["paths"][path][request.method.lower()]["responses"]
        content = next(responses[status] for status in (200, 201, 204) if status in responses).get("content", {})
        if "application/json" not in content:
            return httpx2.Response(200, headers=headers, text="a,b,n\n")
        value = examples.make_value(content["application/json"]["schema"], schemas)
        return httpx2.Response(200, headers=headers, json={**value, "next": None} if "items" in value else value)

    monkeypatch.chdir(tmp_path)
    for name in ("corpus.jsonl", "bm25.trec"):
        Path(name).write_text("one row")
    quorum = Quorum("https://quorum.example", "quorum_token", transport=httpx2.MockTransport(answer))
    monkeypatch.setattr(Quorum, "from_environment", lambda: quorum)
    monkeypatch.setattr(quorum, "close", lambda: None)
    for operation in operations:
        requests.clear()
        exec(compile(operation.python, operation.key, "exec"), {})
        method, address, body = parts_of(operation)
        sent = [
            request for request in requests if (request.method, urlsplit(str(request.url)).path) == (method, address)
        ]
        assert sent or operation.key in UPLOADED_IN_PARTS, operation.python
        if body is not None:
            assert json.loads(sent[0].read() or "{}") == body, operation.python


@pytest.mark.django_db
@pytest.mark.parametrize("key", ["get-pairs", "patch-settings"])
def test_an_example_does_on_a_site_what_it_says(operations, monkeypatch, capsys, key):
    books = make_collection("books")
    alice = make_member(books, "alice", role=Role.ADMIN).user
    pair = make_pair(books)
    monkeypatch.setattr(Quorum, "from_environment", lambda: client_of(alice))
    exec(next(operation.python for operation in operations if operation.key == key), {})
    printed = capsys.readouterr().out
    books.refresh_from_db()
    assert (
        f"number={pair.pk}" in printed if key == "get-pairs" else (books.overlap, "overlap=2" in printed) == (2, True)
    )


def test_an_operation_says_which_scope_and_role_it_needs(operations: list[ApiOperation]) -> None:
    needs = {operation.key: (operation.scope, operation.role) for operation in operations}
    assert needs["post-campaigns"] == ("manage", "admin") and needs["get-collections"] == ("read", "site")
    assert needs["post-task-judge"] == ("judge", "judge") and needs["post-conflict-resolve"] == ("judge", "adjudicate")
    assert all(role and scope in ("read", "judge", "manage") for scope, role in needs.values())


def test_fields_show_type_bounds_and_those_within(operations: list[ApiOperation]) -> None:
    by_key = {operation.key: operation for operation in operations}
    rounds = next(field for field in by_key["post-campaigns"].body if field.name == "rounds")
    assert (rounds.type, rounds.bounds) == ("integer | null", "≥ 1, ≤ 5")
    names = [field.name for field in by_key["get-members"].answers[0].fields]
    assert names[0] == "items" and "items[].role" in names and names[-1] == "next"
    assert not any("Raises" in operation.text for operation in operations)
    assert by_key["get-members"].parameters[0].translated.startswith("<code>next</code> of the page before")


@pytest.mark.django_db
def test_pages_are_open_link_swagger_and_answer_in_the_readers_language() -> None:
    client = Client()
    index = client.get("/api-reference/").content.decode()
    assert "/api/v1/docs" in index and "/api/v1/openapi.json" in index
    page = client.get("/api-reference/campaigns/", headers={"accept-language": "zh-hans"}).content.decode()
    with translation.override("zh-hans"):
        help_text = translation.gettext("Judging stops at this cost. You can resume it later.")
    assert "令牌权限范围" in page and f"<td>{help_text}</td>" in page
    assert texts_with(page, "zh", re.compile("API|Campaigns|Quorum|English|Ctrl|panel|human")) == []
    assert client.get("/api-reference/none/").status_code == 404


def test_the_document_is_in_english_whoever_asks_first() -> None:
    with translation.override("zh-hans"):
        document = api.get_openapi_schema(path_prefix="/chinese/")
    assert "Judging stops at this cost" in json.dumps(document["components"])
