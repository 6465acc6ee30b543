"""Vespa 8: https://docs.vespa.ai/en/reference/api/query.html."""

import re
from typing import Any

from tests.search_engines.base import BOOKS, INDEX, KEY, Book, LookAlike, Refusal, rank, read_json
from tests.search_engines.server import Request


def error(status: int, code: int, summary: str, message: str) -> Refusal:
    errors = [{"code": code, "summary": summary, "message": message}]
    root = {"id": "toplevel", "relevance": 1.0, "fields": {"totalCount": 0}, "errors": errors}
    return Refusal(status, {"root": root})


class Vespa(LookAlike):
    kind = "vespa"
    version = "8"
    documentation = "https://docs.vespa.ai/en/reference/api/query.html"
    options = {"index": INDEX, "bearer_env": "ENGINE_KEY"}
    mistakes = (
        {"template": '{"yql": "select * from {{index}} where colours(@text)", "text": "{{query}}"}'},
        "status-400",
    )
    unknown_index = "status-400"
    missing_key = wrong_key = "status-403"
    most = 400

    def identity(self, book: Book) -> str:
        return f"id:{INDEX}:{INDEX}::b{book.number}"

    def search(self, request: Request) -> Any:
        if request.headers.get("authorization") != f"Bearer {KEY}":
            raise Refusal(403, {"code": 403, "message": "Forbidden"})
        if request.path != "/search/":
            raise Refusal(404, {"status": 404, "message": "No binding for URI"})
        if request.method not in ("GET", "POST"):
            raise error(405, 3, "Illegal query", f"{request.method} is not allowed")
        body = read_json(request, error(400, 3, "Illegal query", "Could not parse the JSON of the request"))
        yql = re.fullmatch(r"select \* from (\w+) where userInput\(@(\w+)\)", body.get("yql", ""))
        if yql is None:
            raise error(400, 4, "Invalid query parameter", "Could not create query from YQL: no viable input")
        if yql[1] != INDEX:
            raise error(400, 4, "Invalid query parameter", f"Could not resolve source ref '{yql[1]}'.")
        if yql[2] not in body:
            raise error(400, 4, "Invalid query parameter", f"Could not resolve the reference @{yql[2]}")
        count = int(body.get("hits", 10))
        if count > self.most:
            raise error(400, 3, "Illegal query", f"{count} hits requested, configured limit: {self.most}.")
        books = rank(body[yql[2]], count)
        coverage: dict[str, Any] = {"coverage": 100, "documents": len(BOOKS), "full": True, "nodes": 1}
        # Half a second, its default, is too little for this engine.
        if self.is_short_of_time or "timeout" not in body:
            books = books[: len(books) // 2]
            degraded = {"match-phase": False, "timeout": True, "adaptive-timeout": False, "non-ideal-state": False}
            coverage |= {"coverage": 50, "documents": len(BOOKS) // 2, "full": False, "degraded": degraded}
        root: dict[str, Any] = {"id": "toplevel", "relevance": 1.0, "fields": {"totalCount": len(books)}}
        root["coverage"] = coverage
        hits = [
            {
                "id": key,
                "relevance": score,
                "source": INDEX,
                "fields": {"sddocname": INDEX, "documentid": key, **fields},
            }
            for key, fields, score in ((self.identity(book), book.fields, score) for book, score in books)
        ]
        return {"root": root | ({"children": hits} if hits else {})}
