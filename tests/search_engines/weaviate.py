"""Weaviate 1.34: https://docs.weaviate.io/weaviate/api/graphql/get."""

import json
import re
from typing import Any

from tests.search_engines.base import INDEX, KEY, Book, LookAlike, Refusal, rank, read_json
from tests.search_engines.server import Request

_GET = re.compile(
    r'\{\s*Get\s*\{\s*(\w+)\s*\(bm25:\s*\{query:\s*("(?:[^"\\]|\\.)*")\},\s*limit:\s*(\d+)\)\s*'
    r"\{([\w\s]*)(?:_additional\s*\{([\w\s]*)\})?\s*\}\s*\}\s*\}"
)


def failed(message: str) -> dict[str, Any]:
    """As the engine writes an error of a query: with status 200."""
    return {"data": {"Get": None}, "errors": [{"locations": [{"column": 9, "line": 1}], "message": message}]}


class Weaviate(LookAlike):
    kind = "weaviate"
    version = "1.34"
    documentation = "https://docs.weaviate.io/weaviate/api/graphql/get"
    mistakes = ({"parameters": {"fields": ["colour"]}}, "refused")
    unknown_index = "refused"
    most = 10_000
    above_most = "refused"

    def identity(self, book: Book) -> str:
        return book.uuid

    def search(self, request: Request) -> Any:
        key = request.headers.get("authorization")
        if key is None:
            words = "anonymous access not enabled, please provide an auth scheme such as OIDC"
            raise Refusal(401, {"code": 401, "message": words})
        if key != f"Bearer {KEY}":
            raise Refusal(401, {"code": 401, "message": "unauthorized: invalid api key"})
        if request.path != "/v1/graphql":
            raise Refusal(404, {"code": 404, "message": f"path {request.path} was not found"})
        if request.method != "POST":
            raise Refusal(405, {"code": 405, "message": f"method {request.method} is not allowed, but [POST] are"})
        body = read_json(request, Refusal(400, {"code": 400, "message": "parsing body body from failed"}))
        if "query" not in body:
            raise Refusal(422, {"error": [{"message": "query cannot be empty"}]})
        match = _GET.fullmatch(body["query"])
        if match is None:
            return failed("Syntax Error GraphQL request (1:1)")
        name, query, limit, fields, additional = match.groups()
        if name != INDEX:
            return failed(f'Cannot query field "{name}" on type "GetObjectsObj".')
        for field in fields.split():
            if field not in ("title", "text"):
                return failed(f'Cannot query field "{field}" on type "{INDEX}".')
        if int(limit) > self.most:
            return failed(f"explorer: list class: search: query maximum results exceeded: {limit}")
        hits = []
        for book, score in rank(json.loads(query), int(limit)):
            own = {"id": book.uuid, "score": str(score)}
            hit: dict[str, Any] = {field: book.fields[field] for field in fields.split()}
            hits.append(hit | {"_additional": {name: own[name] for name in (additional or "").split()}})
        return {"data": {"Get": {INDEX: hits}}}
