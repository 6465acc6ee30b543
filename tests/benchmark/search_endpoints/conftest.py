"""A small JSON search server whose query says what it answers, and an owner of the site."""

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from django.test import Client

from annotation.models import User
from tests.factories import make_user

KEY = "Bearer k3y-that-nobody-may-see"
DOCUMENTS = [
    {"id": number, "name": f"<b>Boot {number}</b>", "description": f"Warm &amp; dry, {number}", "score": 9.5 - number}
    for number in range(1, 6)
]


@dataclass
class JsonSearch:
    """`answers`: query to status, media type and body; others get the documents.

    `requests`: path, headers by names in lower case, body.
    """

    port: int = 0
    answers: dict[str, tuple[int, str, str]] = field(default_factory=dict)
    requests: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def answer(self, query: str, document: Any, status: int = 200, media: str = "application/json") -> None:
        self.answers[query] = (status, media, document if isinstance(document, str) else json.dumps(document))


@pytest.fixture
def engine(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[JsonSearch]:
    """The server; its address is one that the owner of the site allowed, its key is in SHOP_AUTH."""
    search = JsonSearch()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            search.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
            if body["q"] == "slow":
                time.sleep(1.0)
            usual = (200, "application/json", json.dumps({"results": DOCUMENTS[: body["n"]], "took": 3}))
            status, media, text = search.answers.get(body["q"], usual)
            if self.headers.get("authorization") != KEY:
                status, media, text = 401, "application/json", '{"error": {"reason": "missing authentication"}}'
            self.send_response(status)
            self.send_header("content-type", media)
            self.send_header("content-length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    search.port = server.server_port
    settings.SEARCH_HOSTS = frozenset({f"127.0.0.1:{search.port}"})
    monkeypatch.setenv("SHOP_AUTH", KEY)
    yield search
    server.shutdown()
    server.server_close()


@pytest.fixture
def shop(engine: JsonSearch) -> dict[str, Any]:
    """The keys of an [[endpoint]] table, as the contract's example has them."""
    return {
        "name": "shop",
        "kind": "http",
        "base_url": engine.address,
        "method": "POST",
        "path": "/search",
        "body": '{"q": "{{query}}", "n": {{k}}}',
        "hits": "results[]",
        "id": "id",
        "title": "name",
        "text": ["name", "description"],
        "score": "score",
        "header_env": {"Authorization": "SHOP_AUTH"},
        "requests_per_minute": 60_000,
        "timeout_s": 20,
    }


@pytest.fixture
def olga(db: None, client: Client) -> User:
    """An owner of the site, signed in."""
    user = make_user("olga", is_owner=True)
    client.force_login(user)
    return user
