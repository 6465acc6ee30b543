"""A local server that speaks the rerank formats of Cohere, Jina and Voyage, by a script of faults."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Fault = Callable[["Handler", dict[str, Any]], None]
"""Answers the request in its own way."""


def score(query: str, document: str) -> float:
    """Share of the query's words that the document has."""
    asked = set(query.lower().split())
    return len(asked & set(document.lower().split())) / len(asked)


class Server(ThreadingHTTPServer):
    """Keeps what was asked; `faults` are met one by one, then all is well."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.asked: list[dict[str, Any]] = []
        self.faults: list[Fault] = []
        self.lock = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    """POST /v2/rerank is Cohere's; /v1/rerank is Jina's with `top_n` and Voyage's with `top_k`."""

    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with self.server.lock:
            self.server.asked.append({"path": self.path, "key": self.headers.get("authorization"), **body})
            fault = self.server.faults.pop(0) if self.server.faults else None
        if fault:
            fault(self, body)
        else:
            self.answer(body, results(body))

    def answer(self, body: dict[str, Any], found: list[dict[str, Any]]) -> None:
        """The format that the address and the fields say."""
        usage = {"total_tokens": sum(len(text.split()) for text in body["documents"])}
        if self.path == "/v2/rerank":
            document = {"id": "r1", "results": found, "meta": {"billed_units": {"search_units": 1}}}
        elif self.path == "/v1/rerank" and "top_k" in body:
            document = {"object": "list", "data": found, "model": body["model"], "usage": usage}
        elif self.path == "/v1/rerank":
            document = {"model": body["model"], "usage": usage, "results": found}
        else:
            return self.send(404, {"message": "no such address"})
        self.send(200, document)

    def send(self, status: int, document: object, **headers: str) -> None:
        """JSON, or text as it is."""
        data = document.encode() if isinstance(document, str) else json.dumps(document).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        """Tests are quiet."""


def results(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Best first, as these APIs answer."""
    found = [{"index": n, "relevance_score": score(body["query"], text)} for n, text in enumerate(body["documents"])]
    return sorted(found, key=lambda one: (-one["relevance_score"], one["index"]))


def status(code: int, **headers: str) -> Fault:
    """An error with a body."""
    return lambda handler, _body: handler.send(code, {"message": f"scripted {code}"}, **headers)


def changed(change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> Fault:
    """A successful answer with other results."""
    return lambda handler, body: handler.answer(body, change(results(body)))


def text(body: str) -> Fault:
    """A successful status with any body."""
    return lambda handler, _asked: handler.send(200, body)


def dropped(handler: Handler, _body: dict[str, Any]) -> None:
    """The connection ends without an answer."""
    handler.close_connection = True
    handler.connection.close()


@contextmanager
def rerank_server() -> Iterator[Server]:
    """A server on a free port of this machine."""
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
