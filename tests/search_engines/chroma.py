"""Chroma 1.5: https://docs.trychroma.com/reference/server-api/get-collection. tests.models asks the real server.

What it says and refuses is what the server of 1.5.9 says. That server has no keys: they are Chroma Cloud's.
"""

import re
from typing import Any

from tests.search_engines.base import BOOKS, KEY, LookAlike, Refusal, read_json
from tests.search_engines.server import Request

COLLECTION = "5b1f9dd0-4b1e-4b6c-9d11-6a7c6a6f3a01"
_PATH = re.compile(r"/api/v2/tenants/default_tenant/databases/default_database/collections/([^/]+)/get")
_INCLUDED = ("distances", "documents", "embeddings", "metadatas", "uris")


def error(status: int, kind: str, message: str) -> Refusal:
    return Refusal(status, {"error": kind, "message": message})


def matches(condition: Any, text: str) -> bool:
    """Return whether a text is as a condition says. Raises Refusal."""
    (name, value), *_others = condition.items() if isinstance(condition, dict) and condition else [("", "")]
    if name in ("$or", "$and"):
        results = [matches(part, text) for part in value]
        return any(results) if name == "$or" else all(results)
    if name not in ("$contains", "$regex"):
        raise error(400, "InvalidArgumentError", "Invalid where document clause")
    return value in text if name == "$contains" else re.search(value, text) is not None


class Chroma(LookAlike):
    kind = "chroma"
    version = "1.5"
    documentation = "https://docs.trychroma.com/docs/querying-collections/full-text-search"
    options = {"index": COLLECTION, "api_key_env": "ENGINE_KEY"}
    mistakes = (
        {"template": '{"where_document": {"$has": "{{query}}"}, "include": ["documents", "metadatas"]}'},
        "status-400",
    )
    unknown_index = "status-400"
    # Names that are none are not looked at; without them come all documents, with texts and metadata.
    optional = {"include", "limit"}

    def search(self, request: Request) -> Any:
        if request.headers.get("x-chroma-token") != KEY:
            raise error(401, "AuthError", "Unauthorized")
        path = _PATH.fullmatch(request.path)
        if path is None:
            raise Refusal(404, "", "text/plain")
        if request.method != "POST":
            raise Refusal(405, "", "text/plain")
        words = "Failed to parse the request body as JSON: EOF while parsing an object at line 1 column 1"
        body = read_json(request, error(400, "InvalidArgumentError", words))
        limit, included = body.get("limit"), body.get("include", ["documents", "metadatas"])
        if limit is not None and (not isinstance(limit, int) or limit < 0):
            words = "Failed to deserialize the JSON body into the target type: limit: invalid type, expected u32"
            raise error(422, "ChromaError", words)
        if name := next((name for name in included if name not in _INCLUDED), ""):
            words = f"Failed to deserialize the JSON body into the target type: include[0]: unknown variant `{name}`"
            raise error(422, "ChromaError", words)
        if not re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", path[1]):
            raise error(400, "InvalidArgumentError", "Collection ID is not a valid UUIDv4")
        if path[1] != COLLECTION:
            raise error(404, "NotFoundError", f"Collection [{path[1]}] does not exist.")
        condition = body.get("where_document")
        books = [book for book in BOOKS if condition is None or matches(condition, book.text)][:limit]
        documents, metadatas = [book.text for book in books], [{"title": book.title} for book in books]
        return {
            "ids": [self.identity(book) for book in books],
            "embeddings": None,
            "documents": documents if "documents" in included else None,
            "uris": None,
            "metadatas": metadatas if "metadatas" in included else None,
            "include": included,
        }
