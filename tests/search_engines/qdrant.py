"""Qdrant 1.20: https://api.qdrant.tech/api-reference/search/query-points."""

import re
from typing import Any

from tests.search_engines.base import INDEX, KEY, Book, LookAlike, Refusal, rank, read_json
from tests.search_engines.server import Request


def error(status: int, message: str) -> Refusal:
    return Refusal(status, {"status": {"error": message}, "time": 0.001})


class Qdrant(LookAlike):
    kind = "qdrant"
    version = "1.20"
    documentation = "https://api.qdrant.tech/api-reference/search/query-points"
    mistakes = ({"parameters": {"vector": "colour"}}, "status-400")

    def identity(self, book: Book) -> str:
        return str(book.number)  # An id is a number or a UUID.

    def search(self, request: Request) -> Any:
        key = request.headers.get("api-key")
        if key != KEY:
            words = "Invalid API key or JWT" if key else "Must provide an API key or an Authorization bearer token"
            raise Refusal(401, words, "text/plain")
        path = re.fullmatch(r"/collections/([^/]+)/points/query", request.path)
        if path is None or request.method != "POST":
            raise Refusal(404, "", "text/plain")
        body = read_json(request, error(400, "Format error in JSON body: EOF while parsing an object"))
        if path[1] != INDEX:
            raise error(404, f"Not found: Collection `{path[1]}` doesn't exist!")
        query = body.get("query")
        if not isinstance(query, dict) or query.keys() - {"options"} != {"text", "model"}:
            raise error(400, "Format error in JSON body: data did not match any variant of enum QueryInterface")
        if query["model"] != "qdrant/bm25":
            raise error(400, "InferenceService is not initialized. Please check if it was properly configured.")
        if body.get("using") != "bm25":
            raise error(400, f"Wrong input: Not existing vector name error: {body.get('using', '')}")
        points = []
        for book, score in rank(query["text"], body.get("limit", 10)):
            point: dict[str, Any] = {"id": book.number, "version": 1, "score": score}
            points.append(point | ({"payload": book.fields} if body.get("with_payload") else {}))
        return {"result": {"points": points}, "status": "ok", "time": 0.001}
