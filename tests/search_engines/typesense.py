"""Typesense 29.0: https://typesense.org/docs/29.0/api/federated-multi-search.html."""

from typing import Any

from tests.search_engines.base import BOOKS, INDEX, KEY, LookAlike, Refusal, rank, read_json
from tests.search_engines.server import Request


class Typesense(LookAlike):
    kind = "typesense"
    version = "29.0"
    documentation = "https://typesense.org/docs/29.0/api/federated-multi-search.html"
    mistakes = ({"parameters": {"fields": "colour"}}, "refused")
    unknown_index = "refused"
    most = 250
    above_most = "refused"

    def search(self, request: Request) -> Any:
        if request.headers.get("x-typesense-api-key") != KEY:
            raise Refusal(401, {"message": "Forbidden - a valid `x-typesense-api-key` header must be sent."})
        if (request.method, request.path) != ("POST", "/multi_search"):
            raise Refusal(404, {"message": "Not Found"})
        body = read_json(request, Refusal(400, {"message": "Bad JSON."}))
        if not isinstance(body.get("searches"), list):
            raise Refusal(400, {"message": "Missing `searches` array."})
        # Names that are no parameters are not looked at.
        return {"results": [self.search_once(search) for search in body["searches"]]}

    def search_once(self, search: dict[str, Any]) -> dict[str, Any]:
        """Return one result; an error stands in its place."""
        count = search.get("per_page", 10)
        unknown = next((name for name in search.get("query_by", "").split(",") if name not in ("title", "text")), "")
        if "collection" not in search or search["collection"] != INDEX:
            return {"code": 404, "error": f"Collection `{search.get('collection', '')}` not found"}
        if "q" not in search:
            return {"code": 400, "error": "Parameter `q` is required."}
        if "query_by" not in search:
            return {"code": 400, "error": "No search fields specified for the query."}
        if unknown:
            return {"code": 404, "error": f"Could not find a field named `{unknown}` in the schema."}
        if count > self.most:
            return {"code": 422, "error": f"Only upto {self.most} hits can be fetched per page"}
        books = rank(search["q"], count)
        hits = [
            {"document": {"id": f"b{book.number}", **book.fields}, "highlights": [], "text_match": int(score) * 10**6}
            for book, score in books
        ]
        found = {"found": len(books), "hits": hits, "out_of": len(BOOKS), "page": 1}
        return {**found, "search_cutoff": self.is_short_of_time}
