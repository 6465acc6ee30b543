"""Solr 9.9: https://solr.apache.org/guide/solr/latest/query-guide/json-request-api.html."""

from typing import Any
from urllib.parse import urlsplit

from tests.search_engines.base import INDEX, LookAlike, Refusal, basic, first_unknown, rank, read_json
from tests.search_engines.server import Request

FIELDS = {"_text_", "id", "text", "title"}


def error(status: int, message: str) -> Refusal:
    return Refusal(
        status, {"responseHeader": {"status": status, "QTime": 1}, "error": {"msg": message, "code": status}}
    )


def page(status: int, message: str) -> Refusal:
    """As the server around the engine writes an error: with a page."""
    return Refusal(status, f"<html><head><title>Error {status} {message}</title></head></html>", "text/html")


class Solr(LookAlike):
    kind = "solr"
    version = "9.9"
    documentation = "https://solr.apache.org/guide/solr/latest/query-guide/json-request-api.html"
    options = {"index": INDEX, "user_env": "ENGINE_USER", "password_env": "ENGINE_KEY"}
    mistakes = ({"parameters": {"fields": "colour"}}, "status-400")
    optional = {"wt"}  # json is the default

    def search(self, request: Request) -> Any:
        if request.headers.get("authorization") != basic():
            raise page(401, "require authentication")
        path = urlsplit(request.path).path
        if path != f"/solr/{INDEX}/query" or request.method not in ("GET", "POST"):
            raise page(404, "Not Found")
        body = read_json(request, error(400, "Error parsing JSON object: Expected a JSON object"))
        if name := first_unknown(body, "query filter offset limit fields sort facet params queries"):
            raise error(400, f"Unknown top-level key in JSON request : {name}")
        params = body.get("params", {})
        if params.get("defType") not in ("edismax", "dismax"):
            raise error(400, "no field name specified in query and no default specified via 'df' param")
        for field in params.get("qf", "").replace(",", " ").split() or ["no field"]:
            if field.partition("^")[0] not in FIELDS:
                raise error(400, f"undefined field {field}")
        shown = params.get("fl", "*").split(",")
        docs = []
        for book, score in rank(params.get("q", ""), int(params.get("rows", 10))):
            doc: dict[str, Any] = {"id": f"b{book.number}", "title": [book.title], "text": [book.text], "_version_": 1}
            docs.append(doc | ({"score": score} if "score" in shown else {}))
        found = {"numFound": len(docs), "start": 0, "numFoundExact": True, "docs": docs}
        header = {"status": 0, "QTime": 1} | ({"partialResults": True} if self.is_short_of_time else {})
        return {"responseHeader": header, "response": found}
