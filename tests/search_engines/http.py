"""A search service of one's own, JSON over POST: https://www.rfc-editor.org/rfc/rfc9110."""

from typing import Any

from tests.search_engines.base import KEY, LookAlike, Refusal, first_unknown, rank, read_json
from tests.search_engines.server import Request


def read_search(request: Request) -> tuple[str, int]:
    """Return query and number of hits of a request. Raises Refusal."""
    if request.path != "/search":
        raise Refusal(404, {"error": "nothing is here"})
    if request.method != "POST":
        raise Refusal(405, {"error": "use POST"})
    body = read_json(request, Refusal(400, {"error": "the body is no JSON object"}))
    if name := first_unknown(body, "q n"):
        raise Refusal(400, {"error": f"unknown field {name}"})
    if not isinstance(body.get("q"), str) or not isinstance(body.get("n"), int):
        raise Refusal(400, {"error": "q is a text, n a number"})
    return body["q"], body["n"]


class Http(LookAlike):
    kind = "http"
    version = "RFC 9110"
    documentation = "https://www.rfc-editor.org/rfc/rfc9110"
    options = {
        "path": "/search",
        "body": '{"q": "{{query}}", "n": {{k}}}',
        "hits": "results",
        "id": "id",
        "title": "name",
        "text": ["description"],
        "score": "score",
        "header_env": {"Authorization": "ENGINE_KEY"},
    }
    mistakes = ({"body": '{"q": "{{query}}", "n": {{k}}, "colour": "red"}'}, "status-400")

    key = KEY  # "": it wants none.

    def search(self, request: Request) -> Any:
        if self.key and request.headers.get("authorization") != self.key:
            raise Refusal(401, {"error": {"reason": "missing authentication"}})
        return {"results": self.hits(*read_search(request))}

    def hits(self, query: str, count: int) -> list[dict[str, Any]]:
        return [
            {"id": f"b{book.number}", "name": book.title, "description": book.text, "score": score}
            for book, score in rank(query, count)
        ]
