"""Elasticsearch 9.2: https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-search."""

import re
from typing import Any

from tests.search_engines.base import INDEX, KEY, LookAlike, Refusal, first_unknown, rank, read_json
from tests.search_engines.server import Request

_BODY = """_source aggs aggregations collapse docvalue_fields explain ext fields from highlight indices_boost min_score
knn pit post_filter profile query rank rescore retriever runtime_mappings script_fields search_after seq_no_primary_term
size slice sort stats stored_fields suggest terminate_after timeout track_scores track_total_hits version"""
_MULTI_MATCH = """query fields type analyzer auto_generate_synonyms_phrase_query boost fuzziness fuzzy_rewrite
fuzzy_transpositions lenient max_expansions minimum_should_match operator prefix_length slop tie_breaker
zero_terms_query _name"""


def error(status: int, kind: str, reason: str, **more: Any) -> Refusal:
    cause = {"type": kind, "reason": reason, **more}
    return Refusal(status, {"error": {"root_cause": [cause], **cause}, "status": status})


class Elasticsearch(LookAlike):
    kind = "elasticsearch"
    version = "9.2"
    documentation = "https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-search"
    mistakes = ({"template": '{"query": {"multi_match": {"query": "{{query}}"}}, "colour": "red"}'}, "status-400")
    most = 10_000

    def sign_in(self, request: Request) -> None:
        """Raise Refusal without the key."""
        key = request.headers.get("authorization", "")
        reason = f"missing authentication credentials for REST request [{request.path}]"
        if key and key != f"ApiKey {KEY}":
            reason = "unable to authenticate with provided credentials and anonymous access is not allowed for this"
        if key != f"ApiKey {KEY}":
            raise error(401, "security_exception", reason)

    def search(self, request: Request) -> Any:
        self.sign_in(request)
        path = re.fullmatch(r"/([^/]+)/_search", request.path)
        if path is None:
            raise error(400, "illegal_argument_exception", f"no handler found for uri [{request.path}]")
        if request.method not in ("GET", "POST"):
            allowed = f"Incorrect HTTP method for uri [{request.path}] and method [{request.method}]"
            raise Refusal(405, {"error": f"{allowed}, allowed: [POST, GET]", "status": 405})
        body = read_json(request, error(400, "parsing_exception", "Unexpected end-of-input: expected close marker"))
        if name := first_unknown(body, _BODY):
            raise error(400, "parsing_exception", f"Unknown key for a VALUE_STRING in [{name}].", line=1, col=1)
        if path[1] != INDEX:
            raise error(404, "index_not_found_exception", f"no such index [{path[1]}]", index=path[1])
        size = body.get("size", 10)
        if size > self.most:
            window = "Result window is too large, from + size must be less than or equal to: [10000] but was"
            raise error(400, "illegal_argument_exception", f"{window} [{size}].")
        (kind, query), *_others = body.get("query", {"match_all": {}}).items()
        if kind != "multi_match":
            raise error(400, "parsing_exception", f"unknown query [{kind}]", line=1, col=1)
        if name := first_unknown(query, _MULTI_MATCH):
            raise error(400, "parsing_exception", f"[multi_match] query does not support [{name}]", line=1, col=1)
        if "query" not in query:
            raise error(400, "parsing_exception", "No text specified for multi_match query", line=1, col=1)
        hits = [
            {"_index": INDEX, "_id": f"b{book.number}", "_score": score, "_source": book.fields}
            for book, score in rank(query["query"], size)
        ]
        total = {"value": len(hits), "relation": "eq"}
        return {
            "took": 1,
            "timed_out": self.is_short_of_time,
            "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0},
            "hits": {"total": total, "max_score": hits[0]["_score"] if hits else None, "hits": hits},
        }
