"""Algolia, Search API v1 of 2026-04: https://www.algolia.com/doc/rest-api/search/search-single-index."""

import re
from typing import Any

from tests.search_engines.base import INDEX, KEY, LookAlike, Refusal, first_unknown, rank, read_json
from tests.search_engines.server import Request

APPLICATION = "LIBRARY001"
_BODY = """query params page hitsPerPage offset length filters facetFilters facets attributesToRetrieve
attributesToHighlight attributesToSnippet restrictSearchableAttributes getRankingInfo clickAnalytics analytics
queryType typoTolerance ignorePlurals removeStopWords distinct ruleContexts enableRules userToken"""


def error(status: int, message: str) -> Refusal:
    return Refusal(status, {"message": message, "status": status})


class Algolia(LookAlike):
    kind = "algolia"
    version = "Search API v1, 2026-04"
    documentation = "https://www.algolia.com/doc/rest-api/search/search-single-index"
    options = {"index": INDEX, "api_key_env": "ENGINE_KEY", "parameters": {"application": APPLICATION}}
    mistakes = ({"template": '{"query": "{{query}}", "colour": "red"}'}, "status-400")
    missing_key = wrong_key = "status-403"
    most = 1000

    def search(self, request: Request) -> Any:
        keys = request.headers.get("x-algolia-application-id"), request.headers.get("x-algolia-api-key")
        if keys != (APPLICATION, KEY):
            raise error(403, "Invalid Application-ID or API key")
        path = re.fullmatch(r"/1/indexes/([^/]+)/query", request.path)
        if path is None or request.method != "POST":
            raise error(404, "Path not found")
        body = read_json(request, error(400, "Invalid JSON: Expecting an object near line:1 column:1"))
        if name := first_unknown(body, _BODY):
            raise error(400, f"Unknown parameter: {name}")
        if path[1] != INDEX:
            raise error(404, f"Index {path[1]} does not exist")
        count = body.get("hitsPerPage", 20)
        if count > self.most:
            raise error(400, f"Invalid value for hitsPerPage: expected an integer between 0 and {self.most}")
        books = rank(body.get("query", ""), count)
        hits = [{"objectID": f"b{book.number}", **book.fields, "_highlightResult": {}} for book, _score in books]
        more = {"page": 0, "nbPages": 1, "hitsPerPage": count, "processingTimeMS": 1}
        return {"hits": hits, "nbHits": len(hits), "query": body.get("query", ""), "params": "", **more}
