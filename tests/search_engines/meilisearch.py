"""Meilisearch 1.24: https://www.meilisearch.com/docs/reference/api/search."""

import re
from typing import Any

from tests.search_engines.base import INDEX, KEY, LookAlike, Refusal, first_unknown, rank, read_json
from tests.search_engines.server import Request

_BODY = """q offset limit hitsPerPage page filter facets attributesToRetrieve attributesToCrop cropLength cropMarker
attributesToHighlight highlightPreTag highlightPostTag showMatchesPosition sort matchingStrategy showRankingScore
showRankingScoreDetails rankingScoreThreshold attributesToSearchOn hybrid vector retrieveVectors locales distinct"""


def error(status: int, code: str, message: str, kind: str = "invalid_request") -> Refusal:
    link = f"https://docs.meilisearch.com/errors#{code}"
    return Refusal(status, {"message": message, "code": code, "type": kind, "link": link})


class Meilisearch(LookAlike):
    kind = "meilisearch"
    version = "1.24"
    documentation = "https://www.meilisearch.com/docs/reference/api/search"
    mistakes = ({"template": '{"q": "{{query}}", "colour": "red"}'}, "status-400")
    wrong_key = "status-403"
    # Of a larger limit it returns pagination.maxTotalHits hits, and refuses nothing.

    def search(self, request: Request) -> Any:
        path = re.fullmatch(r"/indexes/([^/]+)/search", request.path)
        if path is None:
            raise Refusal(404, "", "text/plain")
        if request.method not in ("GET", "POST"):
            raise Refusal(405, "", "text/plain")
        key = request.headers.get("authorization", "")
        if not key.startswith("Bearer "):
            message = "The Authorization header is missing. It must use the bearer authorization method."
            raise error(401, "missing_authorization_header", message, "auth")
        if key != f"Bearer {KEY}":
            raise error(403, "invalid_api_key", "The provided API key is invalid.", "auth")
        body = read_json(request, error(400, "malformed_payload", "The json payload provided is malformed."))
        if name := first_unknown(body, _BODY):
            raise error(400, "bad_request", f"Unknown field `{name}`: expected one of `q`, `vector`, `offset`, `limit`")
        if path[1] != INDEX:
            raise error(404, "index_not_found", f"Index `{path[1]}` not found.")
        limit = body.get("limit", 20)
        hits = []
        for book, score in rank(body.get("q", ""), min(limit, 1000)):
            hit: dict[str, Any] = {"id": f"b{book.number}", **book.fields}
            hits.append(hit | ({"_rankingScore": score / 10} if body.get("showRankingScore") else {}))
        more = {"processingTimeMs": 1, "limit": limit, "offset": 0, "estimatedTotalHits": len(hits)}
        return {"hits": hits, "query": body.get("q", ""), **more}
