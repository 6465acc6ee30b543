"""A local server in the shape of Tavily's and Exa's search, with faults on demand."""

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Behaviour = tuple[int, str, dict[str, str]]  # Status, body, further headers.


def tavily(*pages: dict[str, Any]) -> str:
    """Tavily's answer: the page's text beside an excerpt."""
    found = [{"content": "an excerpt", "raw_content": page.get("text"), "score": 0.9, **page} for page in pages]
    return json.dumps({"query": "q", "results": found, "response_time": 0.1})


def exa(*pages: dict[str, Any]) -> str:
    """Exa's answer."""
    found = [{"id": page["url"], "publishedDate": "2024-05-01T00:00:00.000Z", **page} for page in pages]
    return json.dumps({"requestId": "r", "results": found})


@dataclass
class SearchService:
    """`answers`: query to its behaviours, of which the last one stays; `asked`: path, headers and body of each call."""

    port: int = 0
    answers: dict[str, list[Behaviour]] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str], dict[str, Any]]] = field(default_factory=list)
    delay: float = 0.0  # Seconds before each answer.
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def script(self, query: str, *answers: str | Behaviour) -> None:
        """What a query is answered, one after another."""
        self.answers[query] = [(200, one, {}) if isinstance(one, str) else one for one in answers]

    def queries(self) -> list[str]:
        """What was searched for, in order."""
        return [body["query"] for _path, _headers, body in self.asked]

    def behaviour(self, query: str) -> Behaviour:
        with self.lock:
            left = self.answers.get(query, [(200, tavily(), {})])
            return left.pop(0) if len(left) > 1 else left[0]


@contextlib.contextmanager
def search_service() -> Iterator[SearchService]:
    """A running service."""
    found = SearchService()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            found.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
            time.sleep(found.delay)
            status, said, headers = found.behaviour(body["query"])
            sent = said.encode()
            self.send_response(status)
            for name, value in {
                "Content-Type": "application/json",
                "Content-Length": str(len(sent)),
                **headers,
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    found.port = server.server_address[1]
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield found
    server.shutdown()
    server.server_close()
